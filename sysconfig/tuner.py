"""Apply a plan and undo it, so that being killed between any two writes does no harm."""

from dataclasses import dataclass, replace

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpus import format_list
from utterd.sysconfig.journal import Entry, Journal, Record
from utterd.sysconfig.knob import Change, Knob, Machine, Outcome, say
from utterd.sysconfig.plan import Plan, Status, plan, verify
from utterd.sysconfig.registry import BY_NAME, KNOBS

_BOOT = "/proc/sys/kernel/random/boot_id"
_KEEP = frozenset({Outcome.PENDING, Outcome.REFUSED})
"""What a restore tries again later; everything else is settled."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one write."""

    change: Change
    outcome: Outcome
    detail: str = ""


class Tuner:
    """Applies, verifies and restores, with a journal.

    Args:
        machine: What to work on; its `applied` is replaced by what the journal says.
        journal: Where to remember.
    """

    def __init__(self, machine: Machine, journal: Journal) -> None:
        self._applied: dict[str, str] = {}
        self._machine = replace(machine, applied=self._applied)
        self._journal = journal
        self._boot = machine.fs.get(_BOOT)

    def plan(self, config: Config) -> Plan:
        """Tell what `apply` would change, without locks or rights.

        Raises:
            ConfigError: The configuration does not fit the machine.
            JournalError: The journal can't be read.
        """
        self._read()
        return plan(self._machine, config)

    def verify(self, config: Config) -> list[Status]:
        """Tell how every setting stands.

        Raises:
            ConfigError: The configuration does not fit the machine.
            JournalError: The journal can't be read.
        """
        record = self._read()
        return verify(self._machine, config, record.failed() if record else {})

    def status(self) -> Record | None:
        """Tell what the journal holds of this boot.

        Raises:
            JournalError: The journal can't be read.
        """
        return self._read()

    def apply(self, config: Config) -> tuple[list[Result], Plan]:
        """Undo what an unfinished or different apply left, then make every change that is due.

        Raises:
            ConfigError: The configuration does not fit the machine; nothing was changed.
            JournalError: No journal, no changes.
        """
        with self._journal.locked():
            record = self._read()
            if record is None:
                self._journal.remove()
            results: list[Result] = []
            label = _label(config)
            if record and not (record.complete and record.label == label):
                results = self._restore(record)
                record = self._read()
            due = plan(self._machine, config)
            if due.changes:
                self._journal.begin(label, self._boot)
                first = len(record.entries) if record else 0
                for number, change in enumerate(due.changes, first):
                    results.append(self._write(number, change))
                self._journal.end()
            return results, due

    def restore(self) -> list[Result]:
        """Put back whatever is still as we left it.

        Raises:
            JournalError: The journal can't be read or written.
        """
        with self._journal.locked():
            record = self._read()
            if record is None:
                self._journal.remove()  # what a killed process, or an earlier boot, left of one
                return []
            return self._restore(record)

    def _read(self) -> Record | None:
        """Read the journal; one of an earlier boot speaks of settings that no longer exist."""
        record = self._journal.read()
        if record and record.boot != self._boot:
            record = None
        self._applied.clear()
        self._applied.update(record.applied() if record else {})
        return record

    def _write(self, number: int, change: Change) -> Result:
        knob = BY_NAME[change.knob]
        self._journal.intend(number, change)
        try:
            knob.set(self._machine, change.path, change.new)
        except OSError as error:
            outcome = knob.outcome(error)
            self._journal.failed(number, outcome)
            return Result(change, outcome, say(error))
        self._applied[change.path] = change.new
        left = self._read_back(knob, change)
        self._journal.done(number, left)
        if left != change.new:
            return Result(change, Outcome.PENDING, f"the machine shows {left}")
        return Result(change, Outcome.APPLIED)

    def _read_back(self, knob: Knob, change: Change) -> str:
        try:
            return knob.get(self._machine, change.path)
        except OSError:
            return change.new

    def _restore(self, record: Record) -> list[Result]:
        results = []
        for entry in sorted(record.live(), key=_order, reverse=True):
            result = self._undo(entry)
            results.append(result)
            if result.outcome not in _KEEP:
                self._journal.restored(entry.number)
        if not any(result.outcome in _KEEP for result in results):
            self._journal.remove()
        return results

    def _undo(self, entry: Entry) -> Result:
        knob, change = BY_NAME[entry.change.knob], entry.change
        back = replace(change, old=entry.left, new=change.old, reason="as it was before")
        try:
            found = knob.get(self._machine, change.path)
            if found == change.old:
                return Result(back, Outcome.RESTORED)
            if found != entry.left:
                return Result(back, Outcome.CHANGED, f"it is {found} now and stays so")
            knob.set(self._machine, change.path, change.old)
        except OSError as error:
            return Result(back, knob.outcome(error), say(error))
        self._applied[change.path] = change.old
        return Result(back, Outcome.RESTORED)


def _order(entry: Entry) -> tuple[int, int]:
    """Order of applying: what was set again later still goes back after what it depends on."""
    return KNOBS.index(BY_NAME[entry.change.knob]), entry.number


def _label(config: Config) -> str:
    """Name a configuration; another one is undone before this one is applied."""
    return f"{config.profile.name} cores={format_list(config.cores)} sound={config.sound}"
