"""Training of the voice of our own (extra `train`)."""
