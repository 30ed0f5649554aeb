"""Written forms to spoken ones, one family of rules a file."""
