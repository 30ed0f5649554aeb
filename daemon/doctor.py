"""`utterd doctor`: the machine's checks, and those that only the daemon's rooms can make."""

from collections.abc import Sequence


def doctor(arguments: Sequence[str]) -> int:
    """Run the checks."""
    from utterd.sysconfig.doctor import main

    return main(arguments)
