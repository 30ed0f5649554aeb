"""Lowers other sound while we speak, by commands of the user's, and always undoes it.

The command that undoes it is started at once, by a guard that waits for the end of a pipe. We
close the pipe when speech ends; if we are killed the kernel does, and the guard undoes it all the
same.
"""

import logging
import os
import subprocess

log = logging.getLogger("ducking")

_GUARD = 'cat >/dev/null; exec sh -c "$0"'


class Ducking:
    """Runs `begin` when speech begins and `end` when it ends, in turn.

    Args:
        begin: shell command; empty for none.
        end: shell command; empty for none.
    """

    def __init__(self, begin: str, end: str) -> None:
        self._begin = begin
        self._end = end
        self._pipe = -1
        self._failed: dict[str, str] = {}
        """Commands whose last run failed, and how."""
        self._children: list[subprocess.Popen[bytes]] = []

    def speaking(self, speaking: bool) -> None:
        """Speech begins or ends. Returns at once; a repeated call changes nothing."""
        self.reap()
        if speaking and self._pipe < 0 and (self._begin or self._end):
            ours, theirs = self._guard()
            self._pipe = ours
            os.close(theirs)
            if self._begin:
                self._run(["sh", "-c", self._begin])
        elif not speaking and self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def close(self, timeout_s: float = 2.0) -> None:
        """Undo it where it is in force, and wait for that."""
        self.speaking(False)
        for child in self._children:
            try:
                child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                log.warning("a ducking command does not end", extra={"pid": child.pid})
        self.reap()

    def _guard(self) -> tuple[int, int]:
        read, write = os.pipe()
        # Its own session: Ctrl-C at a terminal must not end the guard before it has undone.
        self._run(["sh", "-c", _GUARD, self._end or "true"], stdin=read)
        return write, read

    def _run(self, command: list[str], stdin: int = subprocess.DEVNULL) -> None:
        self._children.append(
            subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    @property
    def problem(self) -> str:
        """Why other sound is not lowered, or was not raised again; empty if all is well."""
        return "; ".join(self._failed.values())

    def reap(self) -> None:
        """See how commands ended."""
        for child in [child for child in self._children if child.poll() is not None]:
            self._children.remove(child)
            command = str(child.args)
            if child.returncode:
                log.warning(
                    "a ducking command failed",
                    extra={"code": child.returncode, "command": command},
                )
                self._failed[command] = f"the command {command} failed ({child.returncode})"
            else:
                self._failed.pop(command, None)
