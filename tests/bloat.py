"""Lets a process with an XPUB socket really grow: by subscriptions, which it must remember."""

from collections.abc import Iterator
from contextlib import contextmanager

import zmq


@contextmanager
def bloated(address: str) -> Iterator[None]:
    """Some 50 MB in whoever publishes at an address, within this context."""
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.reconnect_ivl = -1  # whoever comes after it shall be spared
    socket.connect(address)
    for number in range(1000):
        socket.subscribe(b"%06d" % number + b"x" * 990)
    try:
        yield
    finally:
        context.destroy(linger=0)
