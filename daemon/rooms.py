"""Commands of `utterd` that live in other rooms and read their own arguments."""

from collections.abc import Callable, Mapping, Sequence

# Each one's module is imported when it runs.
# ruff: noqa: PLC0415

HELP = {
    "explain": "show how the front end reads a text, stage by stage",
    "tune": "plan, apply, verify and undo the settings of the machine",
    "doctor": "look for everything that makes speech late or silent",
}


def _explain(arguments: Sequence[str]) -> int:
    from utterd.engine.frontend.explain import main as explain

    return explain(list(arguments))


def _tune(arguments: Sequence[str]) -> int:
    from utterd.sysconfig.main import main as tune

    return tune(list(arguments))


def _doctor(arguments: Sequence[str]) -> int:
    from utterd.daemon.doctor import doctor

    return doctor(list(arguments))


ROOMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "explain": _explain,
    "tune": _tune,
    "doctor": _doctor,
}
