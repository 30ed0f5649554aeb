"""`utterd doctor`: everything that makes speech late or silent, and the command that mends it."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from utterd.sysconfig import bundle, report
from utterd.sysconfig.check import Check, Finding, Scene, Verdict, broken
from utterd.sysconfig.checks import files, gpu, latency, machine, rights, sound
from utterd.sysconfig.config import Config, ConfigError, load
from utterd.sysconfig.journal import FOLDER
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.sysfs import Sysfs

CHECKS: tuple[Check, ...] = (
    sound.cards,
    sound.holders,
    sound.server,
    rights.groups,
    rights.limits,
    rights.sockets,
    machine.governor,
    machine.tuning,
    machine.rivals,
    machine.interrupts,
    machine.throttling,
    machine.links,
    machine.clock,
    gpu.gpu,
    gpu.libraries,
    files.space,
    files.versions,
    latency.wake_up,
)
EXIT = {Verdict.FINE: 0, Verdict.WARNING: 1, Verdict.BROKEN: 2}
_DATA = ("/var/lib/utterd", "~/.local/share/utterd")
_RUN = ("/run/utterd", "$XDG_RUNTIME_DIR/utterd")
"""Where the service, and a daemon of the user's own, keep voices and sockets."""
_WORST = (Verdict.BROKEN, Verdict.WARNING, Verdict.FINE)


def main(argv: Sequence[str] | None = None, checks: Sequence[Check] = ()) -> int:
    """Examine the machine and print a table.

    Args:
        argv: Arguments; None for the process's own.
        checks: More checks, such as the daemon's own (PortAudio's devices, its health).

    Returns:
        0 where all is fine, 1 with warnings, 2 where something is broken.
    """
    options = _parser().parse_args(argv)
    try:
        config = load(options.config)
    except ConfigError as error:
        finding = broken("configuration", str(error), "it can't be used", "mend what it names")
        return _tell([finding], options, Config())
    nvml = Nvml.open()
    try:
        scene = Scene(
            fs=Sysfs(),
            nvml=nvml,
            config=config,
            journal=options.journal,
            data=options.data,
            run=options.run,
            runtime_dir=os.environ.get("XDG_RUNTIME_DIR", ""),
            seconds=options.seconds,
        )
        return _tell(examine(scene, (*CHECKS, *checks)), options, config)
    finally:
        nvml.close()


def examine(scene: Scene, checks: Iterable[Check]) -> list[Finding]:
    """Run checks; one that fails itself is a finding, not the end."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings.extend(check(scene))
        except Exception as error:  # noqa: BLE001 - a doctor that dies of one symptom helps nobody
            name = getattr(check, "__name__", "check")
            text = f"could not be examined: {type(error).__name__}: {error}"
            findings.append(
                broken(name, text, "unknown", "report this with utterd doctor --bundle")
            )
    return findings


def worst(findings: Iterable[Finding]) -> Verdict:
    """The worst verdict among findings."""
    verdicts = {finding.verdict for finding in findings}
    return next((verdict for verdict in _WORST if verdict in verdicts), Verdict.FINE)


def _tell(findings: list[Finding], options: argparse.Namespace, config: Config) -> int:
    verdict = worst(findings)
    if options.bundle:
        bundle.write(options.bundle, findings, Sysfs(), config)
    if options.json:
        body = {"verdict": str(verdict), "findings": [asdict(finding) for finding in findings]}
        sys.stdout.write(json.dumps(body, ensure_ascii=False) + "\n")
        return EXIT[verdict]
    rows = [(str(f.verdict), f.name, f.found) for f in findings]
    sys.stdout.write(report.table(("VERDICT", "WHAT", "FOUND"), rows) + "\n")
    for finding in sorted(findings, key=lambda finding: _WORST.index(finding.verdict)):
        if finding.verdict is not Verdict.FINE:
            sys.stdout.write(f"\n{finding.name}: {finding.why}.\n    {finding.mend}\n")
    if options.bundle:
        sys.stdout.write(f"\nwritten to {options.bundle}\n")
    return EXIT[verdict]


def _where(what: str, folders: Sequence[str]) -> Path:
    """The first folder that has something; else the first of all."""
    paths = [Path(os.path.expandvars(folder)).expanduser() for folder in folders]
    return next((path for path in paths if any(path.glob(what))), paths[0])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="utterd doctor",
        description="Find what makes speech late or silent. Exits 0 fine, 1 warnings, 2 broken.",
    )
    named = os.environ.get("UTTERD_DATA", "")
    data = Path(named) if named else _where("voices/*/voice.toml", _DATA)
    run = _where("control.sock", _RUN)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--bundle", type=Path, help="also write a file for a bug report (.tar.gz)")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="wake-up latency is measured for"
    )
    parser.add_argument("--config", type=Path, help="file with a [tune] table")
    parser.add_argument("--data", type=Path, default=data, help=f"voices; default {data}")
    parser.add_argument("--run", type=Path, default=run, help=f"sockets; default {run}")
    parser.add_argument("--journal", type=Path, default=FOLDER, help=f"tuning; default {FOLDER}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
