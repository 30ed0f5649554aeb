"""Voices behind one interface (see `contract`)."""
