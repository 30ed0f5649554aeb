"""utterd: the player process: samples to the speaker."""
