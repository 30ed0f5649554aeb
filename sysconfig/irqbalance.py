"""The socket of irqbalance: read its list of banned interrupts and replace it."""

import errno
import os
import re
import socket

from utterd.sysconfig.sysfs import Sysfs

_FOLDER = "/run/irqbalance"
ANSWER_S = 10
"""It answers between two looks at all interrupts, which takes long on a busy machine."""


def running(fs: Sysfs) -> bool:
    """Tell whether an irqbalance runs on the machine."""
    return any(
        fs.get(f"/proc/{pid}/comm") == "irqbalance" for pid in fs.names("/proc") if pid.isdigit()
    )


def sockets(fs: Sysfs) -> list[str]:
    """Sockets of running instances; those of dead ones lie about and are passed over."""
    found = []
    for path in fs.match(_FOLDER, "irqbalance*.sock"):
        digits = re.sub(r"\D", "", path.rpartition("/")[2])
        if fs.get(f"/proc/{digits}/comm") == "irqbalance":
            found.append(path)
    return found


def banned(fs: Sysfs) -> frozenset[int]:
    """Interrupts irqbalance was told to leave alone, by whomever.

    Raises:
        OSError: No socket, or not allowed.
    """
    setup = _ask(fs, "setup")
    if "SLEEP" not in setup:
        raise OSError(errno.EACCES, "irqbalance gave no answer; it obeys root only")
    return frozenset(int(number) for number in re.findall(r"\bIRQ (\d+)\b", setup))


def ban(fs: Sysfs, numbers: frozenset[int]) -> None:
    """Replace the whole list.

    Raises:
        OSError: No socket, or not allowed.
    """
    words = " ".join(str(number) for number in sorted(numbers)) or "NONE"
    _ask(fs, f"settings ban irqs {words}")


def _ask(fs: Sysfs, words: str) -> str:
    paths = sockets(fs)
    if not paths:
        raise OSError(errno.ENOENT, "irqbalance has no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(ANSWER_S)
        link.connect(fs.at(paths[0]))
        who = socket.SCM_CREDENTIALS, _credentials()
        link.sendmsg([words.encode()], [(socket.SOL_SOCKET, *who)])
        link.shutdown(socket.SHUT_WR)
        return _all(link)


def _all(link: socket.socket) -> str:
    parts: list[bytes] = []
    try:
        while part := link.recv(65536):
            parts.append(part)
    except TimeoutError:
        raise OSError(errno.EAGAIN, f"irqbalance did not answer within {ANSWER_S} s") from None
    except ConnectionResetError:
        pass  # it closes with our words unread where they are none it knows: an empty answer
    return b"".join(parts).decode("utf-8", "replace")


def _credentials() -> bytes:
    numbers = (os.getpid(), os.getuid(), os.getgid())
    return b"".join(number.to_bytes(4, "little") for number in numbers)
