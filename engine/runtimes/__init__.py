"""Runtimes behind one interface (see `contract`)."""
