"""What children write on standard error, as records of the daemon's log.

Their own warnings, tracebacks and the words of libraries would otherwise stand between the lines
of a log in JSON, and journald would take the loss of a voice for a line like any other.
"""

import asyncio
import logging
import os
import re

_MOST_BYTES = 65_536
_HEAD = re.compile(r"(CRITICAL|ERROR|WARNING) (\w+): ")
"""As children format their records; what follows without a head, such as a traceback, belongs to
the record before it."""


class Overheard:
    """Standard error of a child over all its lives, and of what it forks.

    Args:
        child: named in its records.
    """

    def __init__(self, child: str) -> None:
        self._child = child
        self._pipe = -1
        self.fd = -1
        """What children write to, once somebody listens."""
        self._rest = b""

    def listen(self) -> None:
        """Begin, in the running event loop."""
        self._pipe, self.fd = os.pipe()
        os.set_blocking(self._pipe, False)
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def close(self) -> None:
        """Log what is left; the children have ended."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self.fd)
        self._read()
        self._tell(self._rest)
        os.close(self._pipe)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _MOST_BYTES)
        except BlockingIOError:
            return
        lines, newline, rest = (self._rest + data).rpartition(b"\n")
        self._tell(lines + newline)
        self._rest = rest[:_MOST_BYTES]

    def _tell(self, written: bytes) -> None:
        said = ""
        level, room = logging.WARNING, self._child
        for line in written.decode("utf-8", "replace").splitlines():
            head = _HEAD.match(line)
            if head is None:
                said = f"{said}\n{line}" if said else line
                continue
            self._log(room, level, said)
            level, room = logging.getLevelNamesMapping()[head[1]], head[2]
            said = line[head.end() :]
        self._log(room, level, said)

    def _log(self, room: str, level: int, said: str) -> None:
        if said := said.rstrip():
            logging.getLogger(room).log(level, "%s", said, extra={"child": self._child})
