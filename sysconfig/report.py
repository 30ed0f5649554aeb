"""Tables for people, plain objects for programs."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from utterd.sysconfig.journal import Record
from utterd.sysconfig.plan import Plan, Status
from utterd.sysconfig.tuner import Result

Rows = Sequence[Sequence[str]]


def table(head: Sequence[str], rows: Rows) -> str:
    """Lay out rows under a head; the last column takes what it needs."""
    if not rows:
        return ""
    lines = [list(head), *[[cell or "-" for cell in row] for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        )
        for line in lines
    )


def show_plan(due: Plan, *, as_json: bool) -> None:
    """Print what would be changed."""
    if as_json:
        _dump(
            {"changes": [asdict(c) for c in due.changes], "notes": [asdict(n) for n in due.notes]}
        )
        return
    rows = [(c.knob, c.path, c.old, c.new, c.reason) for c in due.changes]
    _print(table(("KNOB", "SETTING", "NOW", "THEN", "WHY"), rows) or "nothing to change")
    _print_notes(due)


def show_results(results: Sequence[Result], due: Plan | None, *, as_json: bool) -> None:
    """Print what was changed or put back."""
    if as_json:
        notes = [asdict(note) for note in due.notes] if due else []
        _dump({"results": [asdict(result) for result in results], "notes": notes})
        return
    rows = [
        (
            str(r.outcome),
            r.change.knob,
            r.change.path,
            f"{r.change.old} -> {r.change.new}",
            r.detail,
        )
        for r in results
    ]
    _print(table(("OUTCOME", "KNOB", "SETTING", "VALUE", "DETAIL"), rows) or "nothing to do")
    if due:
        _print_notes(due)


def show_states(states: Sequence[Status], *, as_json: bool) -> None:
    """Print how everything stands."""
    if as_json:
        _dump({"settings": [asdict(state) for state in states]})
        return
    rows = [(str(s.state), s.knob, s.path, s.found, s.want, s.detail) for s in states]
    head = ("STATE", "KNOB", "SETTING", "NOW", "WANTED", "DETAIL")
    _print(table(head, rows) or "the profile asks for nothing")


def show_record(record: Record | None, *, as_json: bool) -> None:
    """Print what the journal holds."""
    if as_json:
        _dump({"applied": asdict(record) if record else None})
        return
    if record is None:
        _print("nothing is applied")
        return
    state = "applied" if record.complete else "interrupted: apply or restore puts it right"
    _print(f"{record.label}: {state}")
    rows = [
        (entry.change.knob, entry.change.path, entry.change.old, entry.left)
        for entry in record.live()
    ]
    _print(table(("KNOB", "SETTING", "BEFORE", "LEFT AT"), rows))


def _print_notes(due: Plan) -> None:
    rows = [(str(note.level), note.knob, note.path, note.text) for note in due.notes]
    if rows:
        _print("\n" + table(("NOTE", "KNOB", "WHERE", "WHAT"), rows))


def _dump(body: object) -> None:
    _print(json.dumps(body, ensure_ascii=False))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
