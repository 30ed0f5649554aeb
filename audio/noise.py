"""Standard error of the player, kept small.

ALSA and PortAudio write to it as they like: a million lines in five seconds when a sound server
dies. Descriptor 2 becomes a pipe that never blocks; what does not fit is lost, and of what fits
a few lines a second go on to the real standard error.
"""

import os
import time

_LINES_A_SECOND = 10
_PIPE_BYTES = 1 << 16


class StderrLimiter:
    """Takes the place of descriptor 2 of this process, for good."""

    def __init__(self) -> None:
        self.real = os.dup(2)
        """The standard error there was."""
        self.fd, end = os.pipe()
        """Readable when there is something to pass on."""
        os.set_blocking(self.fd, False)
        os.set_blocking(end, False)
        os.dup2(end, 2)
        os.close(end)
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def pass_on(self) -> None:
        """Pass on what came, within the limit."""
        try:
            data = os.read(self.fd, _PIPE_BYTES)
        except BlockingIOError:
            return
        second = int(time.monotonic())
        if second != self._second:
            self._second = second
            self._lines = 0
            self._report()
        for line in data.splitlines(keepends=True):
            if self._lines < _LINES_A_SECOND:
                self._lines += 1
                self._write(line)
            else:
                self._left_out += 1

    def finish(self) -> None:
        """Pass on the rest, before the process ends."""
        self.pass_on()
        self._report()

    def _report(self) -> None:
        if self._left_out:
            self._write(b"utterd player: %d lines of the sound library left out\n" % self._left_out)
            self._left_out = 0

    def _write(self, line: bytes) -> None:
        try:
            os.write(self.real, line)
        except OSError:
            self._left_out += 1  # nobody reads it, or not fast enough
