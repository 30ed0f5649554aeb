"""The nursery: a process that has imported and read what all workers need, and forks them.

A worker that begins in a new interpreter spends half a second of processor time before it can
load its voice; one that is forked here spends none, and shares the front end's data with the
others. The nursery opens no voice, runs no network, starts no thread and reads no text: what
can break a worker never happens in it. It ends at once when the daemon is gone.

Each order is one packet with four descriptors: the worker's control channel, the ring, the
player's eventfd, and a socket on which the daemon is told of its birth (pid, with a pidfd) and,
later, of its end (exit code). A worker lives on when the nursery dies; only its exit code is lost.
"""

import argparse
import gc
import logging
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec
import setproctitle

from utterd.engine import worker
from utterd.engine.birth import INTEGER
from utterd.engine.cache import keys
from utterd.engine.channel import Channel
from utterd.engine.frontend.reader import Reader
from utterd.engine.messages import Fork, NurseryAlive, ToNursery

log = logging.getLogger("nursery")

_DESCRIPTORS = 4
_ALIVE_SECONDS = 1.0
_TEXTS = ("你好，今天3点见。", "Turn left at the Zorblatt junction.")


@dataclass(frozen=True, slots=True)
class _Born:
    pid: int
    birth: socket.socket


class Nursery:
    """Forks workers until the daemon is gone.

    Args:
        end: the socket to the daemon.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._channel = Channel(end, ToNursery)
        self._waiting = select.poll()
        self._waiting.register(end, select.POLLIN)
        self._alive: dict[int, _Born] = {}
        """Workers by their pidfd."""

    def run(self) -> NoReturn:
        """Take orders, and tell who ended."""
        due = time.monotonic()
        try:
            while True:
                if time.monotonic() >= due:
                    self._channel.send(NurseryAlive(worker.rss_bytes()), wait=False)
                    due = time.monotonic() + _ALIVE_SECONDS
                for fd, _ in self._waiting.poll(max(0.0, due - time.monotonic()) * 1000.0):
                    if fd == self._end.fileno():
                        self._take()
                    else:
                        self._bury(fd)
        except EOFError:
            os._exit(0)
        except msgspec.DecodeError as error:
            log.critical("the daemon sent what this nursery doesn't know: %s", error)
            os._exit(2)

    def _take(self) -> None:
        order, descriptors = self._channel.receive_with_descriptors(_DESCRIPTORS)
        if isinstance(order, Fork) and len(descriptors) == _DESCRIPTORS:
            self._fork(order.title, *descriptors)
        else:
            for descriptor in descriptors:
                os.close(descriptor)
            os._exit(0)

    def _fork(self, title: str, control: int, ring: int, wake: int, birth: int) -> None:
        try:
            pid = os.fork()
            if pid == 0:
                _become_worker(title, control, ring, wake)
        except OSError as error:  # the daemon sees that the channel is closed, and tries again
            log.error("no worker can be forked: %s; is the limit of tasks reached?", error)
            os.close(birth)
            return
        finally:
            for descriptor in (control, ring, wake):
                os.close(descriptor)
        born = _Born(pid, socket.socket(fileno=birth))
        born.birth.setblocking(False)
        pidfd = os.pidfd_open(pid)
        self._alive[pidfd] = born
        self._waiting.register(pidfd, select.POLLIN)
        _tell(born.birth, pid, [pidfd])

    def _bury(self, pidfd: int) -> None:
        born = self._alive.pop(pidfd)
        self._waiting.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(born.pid, 0)
        _tell(born.birth, os.waitstatus_to_exitcode(status), [])
        born.birth.close()


def _tell(birth: socket.socket, number: int, descriptors: list[int]) -> None:
    """Tell the daemon; it may have closed its end, having no more use for the worker."""
    try:
        socket.send_fds(birth, [INTEGER.pack(number)], descriptors)
    except OSError as error:
        log.debug("nobody asks for this worker any more: %s", error)


def _become_worker(title: str, control: int, ring: int, wake: int) -> NoReturn:
    """In the forked child: forget the nursery, and work."""
    try:
        _close_all_but({0, 1, 2, control, ring, wake})
        setproctitle.setproctitle(f"utterd.engine.worker {title}")
        worker.work(control, ring, wake)
    except BaseException:
        log.exception("a worker can't begin")
    finally:
        os._exit(2)


def _close_all_but(kept: set[int]) -> None:
    """Close the nursery's own descriptors, which a worker must not hold open."""
    for path in list(Path("/proc/self/fd").iterdir()):
        if (descriptor := int(path.name)) not in kept:
            try:
                os.close(descriptor)
            except OSError:
                continue  # the one that listed them


def _prepare() -> None:
    """Load what workers share, and see to it that it can be forked."""
    reader = Reader()
    for text in _TEXTS:
        reader.analyse(text)
    del reader
    keys.code()
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        log.warning("a library started %d threads: forked workers may hang", threads - 1)
    gc.collect()
    gc.freeze()  # else the collector would write to every page that is shared


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the nursery on the descriptor that the daemon handed down."""
    parser = argparse.ArgumentParser(prog="utterd.engine.nursery", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True, help="SOCK_SEQPACKET channel")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        end = socket.socket(fileno=options.control_fd)
    except OSError as error:
        parser.exit(2, f"utterd.engine.nursery: bad descriptor: {error}; the daemon starts it\n")
    _prepare()
    sys.stderr.flush()
    Nursery(end).run()


if __name__ == "__main__":
    main()
