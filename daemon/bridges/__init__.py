"""Processes that offer the daemon to programs that speak other protocols, as its clients."""
