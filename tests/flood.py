"""Subscriptions, as fast as a program can send them, that nobody means."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import zmq

_TURN = 1000


@contextmanager
def flooded(address: str) -> Iterator[None]:
    """Flood an XPUB socket for the length of a block."""
    over = threading.Event()
    thread = threading.Thread(target=_flood, args=(address, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _flood(address: str, over: threading.Event) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.XSUB)
    socket.connect(address)
    for number in itertools.count():
        try:
            for said in (b"\x01hello.%d", b"\x00hello.%d"):
                socket.send(said % number, zmq.NOBLOCK)
        except zmq.Again:
            time.sleep(0.001)
        if number % _TURN == 0 and over.is_set():
            break
    context.destroy(linger=0)
