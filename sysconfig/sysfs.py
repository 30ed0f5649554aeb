"""The only door to /proc, /sys, /dev and /run, so that a test can put any machine behind it."""

import errno
import os
from fnmatch import fnmatchcase
from pathlib import Path

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO})


class Sysfs:
    """Files of a machine, named by their absolute path on it.

    Args:
        root: Where that machine's `/` is; a copy or a made-up tree serves as well as the real one.
    """

    def __init__(self, root: Path | str = "/") -> None:
        self.root = Path(root)
        self._base = str(self.root).rstrip("/")

    def at(self, path: str) -> str:
        """Tell where a file of the machine lies on this one."""
        return self._base + path

    def read(self, path: str) -> str:
        """Read a whole file, without the white space around it.

        Raises:
            OSError: As the kernel says it: ENOENT, EBUSY (CPU offline), EIO and so on.
        """
        handle = os.open(self.at(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            parts: list[bytes] = []
            while part := os.read(handle, 65536):
                parts.append(part)
        finally:
            os.close(handle)
        return b"".join(parts).decode("utf-8", "replace").strip(" \t\r\n\0")

    def get(self, path: str, default: str = "") -> str:
        """Read a file, or answer with a default where that fails."""
        try:
            return self.read(path)
        except OSError:
            return default

    def number(self, path: str) -> int | None:
        """Read a whole number; None where there is none."""
        try:
            return int(self.get(path), 0)
        except ValueError:
            return None

    def write(self, path: str, value: str) -> None:
        """Give a file a value in a single write, which is what sysfs asks for; never create one.

        Raises:
            OSError: As the kernel says it.
        """
        data = (value or "\n").encode()
        handle = os.open(self.at(path), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.EIO, "the kernel took only part of the value", path)
        finally:
            os.close(handle)

    def exists(self, path: str) -> bool:
        """Tell whether there is anything at a path."""
        try:
            return Path(self.at(path)).exists()
        except OSError:
            return False

    def names(self, path: str) -> list[str]:
        """List a folder in order; numbers count as numbers. Empty if there is no such folder."""
        try:
            found = [entry.name for entry in Path(self.at(path)).iterdir()]
        except OSError:
            return []
        return sorted(found, key=lambda name: (not name.isdigit(), name.zfill(9), name))

    def match(self, folder: str, pattern: str) -> list[str]:
        """Paths in a folder whose name fits a shell pattern, in order."""
        return [f"{folder}/{name}" for name in self.names(folder) if fnmatchcase(name, pattern)]

    def link(self, path: str) -> str:
        """Tell what a symbolic link says; empty if it is none or may not be read."""
        try:
            return str(Path(self.at(path)).readlink())
        except OSError:
            return ""

    def real(self, path: str) -> str:
        """Follow every link of a path, as a path on that machine."""
        real = os.path.realpath(self.at(path))
        return real.removeprefix(os.path.realpath(self._base)) if self._base else real
