"""How late threads wake up: now, and before and after tuning."""

import json
import time
from collections.abc import Iterator

from utterd.sysconfig.check import Finding, Scene, fine, warning
from utterd.sysconfig.config import ConfigError
from utterd.sysconfig.latency import Wakeups, measure
from utterd.sysconfig.placement import place

LATE_US = 2_000
"""A tenth of what the device buffers: later than that, and a sound card may run dry."""
JUMP_S = 0.02


def wake_up(scene: Scene) -> Iterator[Finding]:
    """Measure for a few seconds on the core of the audio thread; watch the wall clock meanwhile."""
    offset = time.time() - time.monotonic()
    try:
        cpu = max(place(scene.fs, scene.config).audio)
    except ConfigError:
        cpu = -1
    now = measure(scene.seconds, cpu)
    if now.max_us > LATE_US:
        why = "sound may crackle, and first sound comes late"
        mend = "systemctl enable --now utterd-tune; see what else runs: top -H"
        yield warning("wake-up latency", _tell(now), why, mend)
    else:
        yield fine("wake-up latency", _tell(now))
    yield from _journal(scene)
    if abs(jump := time.time() - time.monotonic() - offset) > JUMP_S:
        why = "logs lie about when; speech itself does not use the wall clock"
        mend = "let one service alone set the time: timedatectl timesync-status"
        yield warning("clock jump", f"the wall clock jumped by {jump * 1000:.0f} ms", why, mend)
    else:
        yield fine("clock jump", f"none within {scene.seconds:g} s")


def _journal(scene: Scene) -> Iterator[Finding]:
    """Figures that `apply --measure` left."""
    try:
        figures = json.loads((scene.journal / "latency.json").read_text())
        parts = [f"{when}: {_tell(Wakeups(**figures[when]))}" for when in ("before", "after")]
    except (OSError, ValueError, KeyError, TypeError):
        return  # never measured
    yield fine("wake-up latency, tuning", "; ".join(parts))


def _tell(figures: Wakeups) -> str:
    kind = "real-time" if figures.realtime else "not real-time"
    return (
        f"median {figures.median_us:.0f}, p99 {figures.p99_us:.0f}, "
        f"max {figures.max_us:.0f} us ({kind}, {figures.count} wake-ups)"
    )
