"""English words and sentences to phonemes."""
