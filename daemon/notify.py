"""systemd's readiness protocol: one datagram a message, nothing where systemd is not there."""

import os
import socket


def notify(*assignments: str) -> None:
    """Tell the service manager.

    Args:
        assignments: such as `READY=1`, `STATUS=...`, `WATCHDOG=1`.
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    with socket.socket(socket.AF_UNIX, kind) as datagram:
        try:
            datagram.sendto("\n".join(assignments).encode(), address)
        except OSError:
            return  # the manager went away or does not read: nothing hangs on its being told


def is_watched() -> bool:
    """Whether a service manager started us, and starts us again."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def watchdog_seconds() -> float:
    """Interval within which systemd wants `WATCHDOG=1`; 0 if it does not."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6
