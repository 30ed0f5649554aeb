"""The machine: clocks, interrupts, throttling, links, rivals, and whether tuning still holds."""

import time
from collections.abc import Iterator

from utterd.sysconfig import irqbalance
from utterd.sysconfig.check import Finding, Scene, broken, fine, warning
from utterd.sysconfig.config import PROFILES, Config, ConfigError
from utterd.sysconfig.cpufreq import policies
from utterd.sysconfig.devices import interrupts as numbers
from utterd.sysconfig.devices import sound_cards
from utterd.sysconfig.journal import Journal, JournalError
from utterd.sysconfig.knob import Knob, Level, Machine, Note, State
from utterd.sysconfig.knobs.conflicts import Conflicts
from utterd.sysconfig.knobs.memory import Memory
from utterd.sysconfig.knobs.pcie import Pcie
from utterd.sysconfig.placement import CPU
from utterd.sysconfig.tuner import Tuner

SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
_EVERYTHING = Config(PROFILES["car"])


def governor(scene: Scene) -> Iterator[Finding]:
    """Clocks that rise too late for the first chunk."""
    found = policies(scene.fs, scene.config)
    slow = []
    for policy in found:
        name = scene.fs.get(f"{policy}/scaling_governor")
        energy = scene.fs.get(f"{policy}/energy_performance_preference")
        lazy = name in ("powersave", "conservative") and energy not in (
            "performance",
            "balance_performance",
        )
        if lazy:
            slow.append(f"{policy.rpartition('/')[2]}: {name} {energy}".strip())
    if slow:
        why = "the first words come late: the clock rises only after milliseconds of work"
        yield warning("governor", "; ".join(slow), why, "systemctl enable --now utterd-tune")
    else:
        yield fine("governor", f"{len(found)} policies" if found else "no frequency driver")


def tuning(scene: Scene) -> Iterator[Finding]:
    """Whether what was applied still holds."""
    try:
        tuner = Tuner(Machine(scene.fs, scene.nvml), Journal(scene.journal))
        record = tuner.status()
        states = tuner.verify(scene.config)
    except (ConfigError, JournalError) as error:
        yield broken("tuning", str(error), "the machine is not tuned", "mend what it names")
        return
    if record is None:
        yield fine("tuning", f"profile {scene.config.profile.name}, nothing applied")
        return
    drifted = [status.path for status in states if status.state is State.DRIFTED]
    if drifted or not record.complete:
        text = (
            f"{len(drifted)} settings drifted: {', '.join(drifted)}" if drifted else "interrupted"
        )
        why = "something else set them since"
        yield warning("tuning", text, why, "utterd-tune verify, then systemctl reload utterd-tune")
    else:
        yield fine("tuning", record.label)


def rivals(scene: Scene) -> Iterator[Finding]:
    """Other tools at the same knobs, and memory settings that stall."""
    yield from _notes("rival", Conflicts(), scene, "they undo each other")
    yield from _notes("memory", Memory(), scene, "a thread can stall for milliseconds")


def interrupts(scene: Scene) -> Iterator[Finding]:
    """Interrupts of the sound cards: who serves them, who shares them, who moves them."""
    balancing = irqbalance.running(scene.fs) and not irqbalance.sockets(scene.fs)
    for card in sound_cards(scene.fs, scene.config.sound):
        for number in numbers(scene.fs, card):
            cpus = scene.fs.get(f"/proc/irq/{number}/effective_affinity_list")
            shared = scene.fs.get(f"/sys/kernel/irq/{number}/actions").split(",")[1:]
            text = f"{card.name}: interrupt {number} on CPU {cpus or '?'}"
            if shared:
                why = "another device's work delays sound"
                mend = "use another slot or port for the card"
                yield warning("interrupts", f"{text}, shared with {', '.join(shared)}", why, mend)
            elif balancing:
                why = "irqbalance moves it about"
                mend = f"start irqbalance with --banirq={number}"
                yield warning("interrupts", text, why, mend)
            else:
                yield fine("interrupts", text)


def throttling(scene: Scene) -> Iterator[Finding]:
    """Heat, and quotas that stop a service in the middle of a sentence."""
    counts = [
        scene.fs.number(f"{core}/thermal_throttle/core_throttle_count") or 0
        for core in scene.fs.match(CPU, "cpu[0-9]*")
    ]
    if any(counts):
        text = f"cores were throttled {sum(counts)} times since boot"
        yield warning("heat", text, "speech slows down when it is hot", "clean or add cooling")
    else:
        yield fine("heat", "no throttling since boot")
    for path in scene.fs.match("/sys/fs/cgroup/utterd.slice", "utterd*.service"):
        quota = scene.fs.get(f"{path}/cpu.max", "max")
        if not quota.startswith("max"):
            why = "all threads together are stopped when it is used up: pauses of up to 100 ms"
            mend = "systemctl edit utterd: remove CPUQuota=, use CPUWeight="
            yield warning("quota", f"cpu.max {quota}", why, mend)


def links(scene: Scene) -> Iterator[Finding]:
    """PCIe links below what card and port can do."""
    yield from _notes("PCIe link", Pcie(), scene, "samples and weights travel slower")


def clock(scene: Scene) -> Iterator[Finding]:
    """The clock source, and jumps of the wall clock while we look."""
    source = scene.fs.get("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in SLOW_CLOCKS:
        why = "reading the time costs microseconds, thousands of times a second"
        mend = "boot with tsc=reliable if the processor's counter is sound"
        yield warning("clock source", source, why, mend)
    elif source:
        yield fine("clock source", source)
    suspended = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    if suspended > 1:
        yield fine("suspend", f"asleep for {suspended:.0f} s since boot; verify tuning after it")


def _notes(name: str, knob: Knob, scene: Scene, why: str) -> Iterator[Finding]:
    """Turn a knob's advice into findings."""
    for item in knob.targets(Machine(scene.fs, scene.nvml), _EVERYTHING):
        if isinstance(item, Note) and item.level in (Level.ADVICE, Level.CONFLICT):
            found, _, mend = item.text.partition("; ")
            yield warning(name, f"{item.path}: {found}", why, mend)
