"""What children write on standard error, as records of the daemon's log.

Their own warnings, tracebacks and the words of libraries would otherwise stand between the lines
of a log in JSON, and journald would take the loss of a voice for a line like any other.
"""

import asyncio
import logging
import os
import re

_COLLECTED_S = 0.1
"""A traceback is written line by line: what comes within so long is looked at together."""
_READ_BYTES = 4096
_PIPE_BYTES = 65_536
"""What a pipe holds on Linux."""
_MOST_BYTES = 16_384
"""Of what comes together."""
_MOST_RECORDS = 30
"""Likewise: a library that babbles must not keep the daemon from its work."""
_HEAD = re.compile(r"(CRITICAL|ERROR|WARNING) (engine|cache|lexicon|nursery|py\.warnings): ")
"""As children begin their records. What has no head belongs to the record before it."""
_GRAVE = ("Traceback", "Fatal Python error")


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
        self._heard = bytearray()
        self._left_out = 0
        """Bytes that were more than is kept."""
        self._timer: asyncio.TimerHandle | None = None

    def listen(self) -> None:
        """Begin, in the running event loop."""
        self._pipe, self.fd = os.pipe()
        os.set_blocking(self._pipe, False)
        os.set_blocking(self.fd, False)  # no child waits for a daemon that doesn't read
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def close(self) -> None:
        """Log what is left; the children have ended."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self.fd)
        for _ in range(_PIPE_BYTES // _READ_BYTES):  # not more: one that lives on may go on writing
            if not self._read():
                break
        if self._timer is not None:
            self._timer.cancel()
            self._tell()
        os.close(self._pipe)

    def _read(self) -> bool:
        """Take some of what there is; whether there was anything."""
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        room = _MOST_BYTES - len(self._heard)
        self._heard += data[:room]
        self._left_out += max(0, len(data) - room)
        if data and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_COLLECTED_S, self._tell)
        return bool(data)

    def _tell(self) -> None:
        self._timer = None
        lines = self._heard.decode("utf-8", "replace").split("\n")
        self._heard.clear()
        records: list[list[str]] = [[]]
        for line in lines:
            if _HEAD.match(line):
                records.append([])
            records[-1].append(line)
        for record in records[: _MOST_RECORDS + 1]:
            self._log("\n".join(record).rstrip())
        for record in records[_MOST_RECORDS + 1 :]:
            self._left_out += len("\n".join(record).encode())
        if self._left_out:
            self._log(f"{self._left_out} bytes more were left out")
            self._left_out = 0

    def _log(self, said: str) -> None:
        if not said:
            return
        room, level = self._child, logging.ERROR if said.startswith(_GRAVE) else logging.WARNING
        if head := _HEAD.match(said):
            level, room = logging.getLevelNamesMapping()[head[1]], head[2]
            said = said[head.end() :]
        logging.getLogger(room).log(level, "%s", said, extra={"child": self._child})
