"""What was said lately, so that it need not be made again (see the room's README)."""
