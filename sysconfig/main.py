"""`utterd-tune`, also reached as `utterd tune`: plan, apply, verify, status, restore."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from utterd.sysconfig import report
from utterd.sysconfig.config import Config, ConfigError, load
from utterd.sysconfig.journal import FOLDER, Journal, JournalError
from utterd.sysconfig.knob import Machine, Outcome, State
from utterd.sysconfig.latency import measure
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.placement import place
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Tuner

FINE, WRONG, BROKEN = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0; 1 where a write was refused, a restore is unfinished or a setting drifted; 2 where the
        command could not be carried out at all.
    """
    options = _parser().parse_args(argv)
    fs = Sysfs(options.root)
    # A made-up root has no GPU of its own; the one of this machine is none of its business.
    nvml = Nvml.open() if str(options.root) == "/" else Nvml.absent()
    try:
        config = load(options.config, options.profile)
        tuner = Tuner(Machine(fs, nvml), Journal(options.journal))
        return _COMMANDS[options.command](tuner, fs, config, options)
    except (ConfigError, JournalError) as error:
        sys.stderr.write(f"utterd-tune: {error}\n")
        return BROKEN
    finally:
        nvml.close()


def _plan(tuner: Tuner, _fs: Sysfs, config: Config, options: argparse.Namespace) -> int:
    report.show_plan(tuner.plan(config), as_json=options.json)
    return FINE


def _apply(tuner: Tuner, fs: Sysfs, config: Config, options: argparse.Namespace) -> int:
    cpu = max(place(fs, config).audio)
    before = measure(options.measure, cpu) if options.measure else None
    results, due = tuner.apply(config)
    if before:
        figures = {"before": asdict(before), "after": asdict(measure(options.measure, cpu))}
        (options.journal / "latency.json").write_text(json.dumps(figures) + "\n")
    report.show_results(results, due, as_json=options.json)
    return WRONG if any(result.outcome is Outcome.REFUSED for result in results) else FINE


def _verify(tuner: Tuner, _fs: Sysfs, config: Config, options: argparse.Namespace) -> int:
    states = tuner.verify(config)
    report.show_states(states, as_json=options.json)
    return WRONG if any(status.state is State.DRIFTED for status in states) else FINE


def _status(tuner: Tuner, _fs: Sysfs, _config: Config, options: argparse.Namespace) -> int:
    report.show_record(tuner.status(), as_json=options.json)
    return FINE


def _restore(tuner: Tuner, _fs: Sysfs, _config: Config, options: argparse.Namespace) -> int:
    results = tuner.restore()
    (options.journal / "latency.json").unlink(missing_ok=True)
    report.show_results(results, None, as_json=options.json)
    unfinished = {Outcome.REFUSED, Outcome.PENDING}
    return WRONG if any(result.outcome in unfinished for result in results) else FINE


_COMMANDS: dict[str, Callable[[Tuner, Sysfs, Config, argparse.Namespace], int]] = {
    "plan": _plan,
    "apply": _apply,
    "verify": _verify,
    "status": _status,
    "restore": _restore,
}
_HELP = {
    "plan": "show what apply would change; changes nothing, needs no rights",
    "apply": "make the changes of the profile (root)",
    "verify": "compare the machine with the profile",
    "status": "show what is applied now",
    "restore": "put back whatever is still as apply left it (root)",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="utterd-tune", description="Tune the machine under the voice, and put it back."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in _HELP.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--config", type=Path, help="file with a [tune] table")
        command.add_argument("--profile", default="", help="instead of the file's profile")
        command.add_argument("--root", type=Path, default=Path("/"), help="another machine's root")
        command.add_argument("--journal", type=Path, default=FOLDER, help=f"default {FOLDER}")
        command.add_argument("--json", action="store_true", help="one JSON object")
        if name == "apply":
            seconds = "seconds of wake-up latency to measure before and after"
            command.add_argument("--measure", type=float, default=0.0, help=seconds)
    return parser


if __name__ == "__main__":
    sys.exit(main())
