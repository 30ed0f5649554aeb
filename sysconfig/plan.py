"""What would be changed, and how things stand: both by reading only."""

from collections.abc import Mapping
from dataclasses import dataclass

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import (
    MISSING,
    Change,
    Knob,
    Level,
    Machine,
    Note,
    Outcome,
    State,
    Target,
    say,
)
from utterd.sysconfig.registry import BY_NAME, KNOBS


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that are due, in order, and what can't or should not be changed."""

    changes: list[Change]
    notes: list[Note]


@dataclass(frozen=True, slots=True)
class Status:
    """How one setting stands."""

    knob: str
    path: str
    state: State
    found: str
    want: str
    detail: str


def plan(machine: Machine, config: Config) -> Plan:
    """Compare every setting with what it should be. Pure: reads, never writes.

    Raises:
        ConfigError: The configuration does not fit the machine.
    """
    changes: list[Change] = []
    targets, notes = wanted(machine, config)
    for target in targets:
        knob = BY_NAME[target.knob]
        try:
            found = knob.get(machine, target.path)
        except OSError as error:
            notes.append(Note(target.knob, target.path, Level.UNSUPPORTED, say(error)))
            continue
        want = knob.canonical(target.want)
        if found != want:
            changes.append(Change(target.knob, target.path, found, want, target.reason))
    return Plan(changes, notes)


def verify(machine: Machine, config: Config, failed: Mapping[str, Outcome]) -> list[Status]:
    """Tell the state of every setting the profile asks for.

    Args:
        machine: With the journal's memory in `applied`.
        config: What should be.
        failed: By path, what came of writes that did not succeed.

    Raises:
        ConfigError: The configuration does not fit the machine.
    """
    targets, notes = wanted(machine, config)
    states = [_state(BY_NAME[target.knob], machine, target, failed) for target in targets]
    return states + [
        Status(note.knob, note.path, State.UNSUPPORTED, "", "", note.text)
        for note in notes
        if note.level is Level.UNSUPPORTED
    ]


def wanted(machine: Machine, config: Config) -> tuple[list[Target], list[Note]]:
    """Ask every knob.

    Raises:
        ConfigError: The configuration does not fit the machine.
    """
    targets: list[Target] = []
    notes: list[Note] = []
    for knob in KNOBS:
        for item in knob.targets(machine, config):
            if isinstance(item, Target):
                targets.append(item)
            else:
                notes.append(item)
    return targets, notes


def _state(knob: Knob, machine: Machine, target: Target, failed: Mapping[str, Outcome]) -> Status:
    want = knob.canonical(target.want)
    try:
        found = knob.get(machine, target.path)
        waits = knob.pending(machine, target) if found == want else ""
    except OSError as error:
        state = State.UNSUPPORTED if error.errno in MISSING else State.PENDING
        return Status(knob.name, target.path, state, "", want, f"can't be read: {say(error)}")
    if found == want:
        state = State.PENDING if waits else State.OK
        return Status(knob.name, target.path, state, found, want, waits)
    outcome = failed.get(target.path)
    if outcome in _AFTER_FAILURE:
        return Status(knob.name, target.path, _AFTER_FAILURE[outcome], found, want, "as tried")
    return Status(knob.name, target.path, State.DRIFTED, found, want, target.reason)


_AFTER_FAILURE: dict[Outcome | None, State] = {
    Outcome.PENDING: State.PENDING,
    Outcome.UNSUPPORTED: State.UNSUPPORTED,
    Outcome.UNCHANGEABLE: State.UNCHANGEABLE,
}
