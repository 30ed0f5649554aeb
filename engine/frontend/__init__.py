"""The front end: text to phonemes, one stage a file (see `contract`)."""
