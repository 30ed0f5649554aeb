"""A small child for the supervisor's tests: it does what it is told, on a SEQPACKET socket."""

import os
import signal
import socket
import sys
import time


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    for order in sys.argv[2:]:
        _obey(channel, order)
    while message := channel.recv(1000):
        _obey(channel, message.decode())


def _obey(channel: socket.socket, order: str) -> None:
    word, _, rest = order.partition(" ")
    if word == "exit":
        os._exit(int(rest))
    elif word == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif word == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    elif word == "close":
        channel.close()
        time.sleep(3600)
    elif word == "say":
        channel.send(rest.encode())


if __name__ == "__main__":
    main()
