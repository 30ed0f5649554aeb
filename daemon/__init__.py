"""utterd: the daemon: sockets, queue, the life of an utterance, supervision, command line."""
