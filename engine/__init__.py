"""utterd: the engine worker: text to samples."""
