"""Cases that run inside the virtual machine, as root, on the standard library alone."""

import contextlib
import ctypes
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import guests
from tests.killing import How, killed_at
from utterd.sysconfig import irqbalance, realtime
from utterd.sysconfig.config import PROFILES, Config, Profile
from utterd.sysconfig.cpus import parse_list
from utterd.sysconfig.journal import Journal
from utterd.sysconfig.knob import Change, Machine, Outcome, State
from utterd.sysconfig.main import main
from utterd.sysconfig.placement import place
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Result, Tuner

CPU = "/sys/devices/system/cpu"
FS = Sysfs("/")
CAR = Config(PROFILES["car"])
SMALL = Config(
    Profile("small", governor="performance", wake_up_us=20, isolate=True), frozenset({2, 3})
)
"""Kernel settings of each kind but interrupts, so that every write can have its victim."""
JOURNAL = Path("/run/utterd-tune")
PR_CAPBSET_DROP = 24
HOW: tuple[How, ...] = ("before", "half", "after")
WATCHED = (
    (f"{CPU}/cpufreq", "policy*", "scaling_governor"),
    (CPU, "cpu[0-9]*", "power/pm_qos_resume_latency_us"),
    ("/proc/irq", "[0-9]*", "smp_affinity_list"),
    ("/sys/fs/cgroup", "*.slice", "cpuset.cpus"),
)
SINGLE = (
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/net/core/wmem_max",
    "/proc/sys/net/core/rmem_max",
)


def snapshot() -> dict[str, str]:
    """Every file that tuning could touch, and its content."""
    found = [(folder, FS.match(folder, pattern), name) for folder, pattern, name in WATCHED]
    paths = [f"{at}/{name}" for _, folders, name in found for at in folders]
    values = {path: FS.get(path, "unreadable") for path in (*paths, *SINGLE)}
    return {path: value for path, value in values.items() if value != "unreadable"}


def tuner() -> Tuner:
    """A tuner of the real machine with the real journal."""
    return Tuner(Machine(FS), Journal(JOURNAL))


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Demand that the machine is as before, and that nothing of the journal is left."""
    before = snapshot()
    yield
    after = snapshot()
    pairs = {path: (value, after.get(path)) for path, value in before.items()}
    assert after == before, {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
    assert not (JOURNAL / "journal.jsonl").exists()


def outcomes(results: list[Result]) -> set[Outcome]:
    """The kinds of outcome among results."""
    return {result.outcome for result in results}


def nvme() -> str:
    """PCI address of the disk, whose interrupts the kernel manages itself."""
    return FS.real("/sys/class/nvme/nvme0/device").rpartition("/")[2]


def case_the_machine_is_what_it_should_be() -> None:
    """Guard against a boot that lost what the other cases are about."""
    assert len(FS.match(f"{CPU}/cpufreq", "policy*")) == 4
    assert FS.get("/sys/devices/system/node/has_memory") == "0-1"
    assert FS.match("/sys/class/sound", "card0")
    assert "performance" in FS.get(f"{CPU}/cpufreq/policy0/scaling_available_governors")
    assert nvme()


def case_plan_changes_nothing() -> None:
    """A plan of the real machine names each family and writes nowhere."""
    with untouched():
        due = tuner().plan(CAR)
    knobs = {change.knob for change in due.changes}
    assert {"governor", "idle", "interrupts", "isolation"} <= knobs, knobs
    assert all(FS.exists(change.path) for change in due.changes)


def case_apply_changes_exactly_the_plan_and_restore_undoes_it() -> None:
    """Before, after and in between, compared file by file."""
    with untouched():
        before, due = snapshot(), tuner().plan(CAR).changes
        results, _ = tuner().apply(CAR)
        assert outcomes(results) <= {Outcome.APPLIED}, results
        after = snapshot()
        changed = {path for path, value in before.items() if after[path] != value}
        assert changed == {change.path for change in due}, changed
        states = tuner().verify(CAR)
        assert {s.state for s in states} <= {State.OK, State.PENDING, State.UNSUPPORTED}, states
        assert tuner().apply(CAR)[0] == []
        assert outcomes(tuner().restore()) == {Outcome.RESTORED}


def case_one_core_is_for_sound_alone() -> None:
    """The last core is left to the voice: work queues, new interrupts, other services."""
    with untouched():
        tuner().apply(CAR)
        assert parse_list(FS.read("/sys/fs/cgroup/system.slice/cpuset.cpus.effective")) == {0, 1, 2}
        assert FS.read("/sys/devices/virtual/workqueue/cpumask") == "7"
        assert int(FS.read("/proc/irq/default_smp_affinity"), 16) == 7
        tuner().restore()


def case_killed_at_every_write() -> None:
    """SIGKILL at every single write(2), before it, in the middle or after; then restore."""
    number, died = 0, True
    while died:
        number += 1
        with untouched():
            died = killed_at(number, HOW[number % 3], lambda: tuner().apply(SMALL))
            assert outcomes(tuner().restore()) <= {Outcome.RESTORED}, number
    assert number > 2 * len(tuner().plan(SMALL).changes), number


def case_killed_at_every_write_of_a_restore() -> None:
    """The same for the way back; a second restore ends it."""
    number, died = 0, True
    while died:
        number += 1
        with untouched():
            tuner().apply(SMALL)
            died = killed_at(number, HOW[number % 3], lambda: tuner().restore())
            assert outcomes(tuner().restore()) <= {Outcome.RESTORED}, number
    assert number > len(tuner().plan(SMALL).changes), number


def case_killed_then_applied_again() -> None:
    """An apply finds an unfinished one, undoes it first, and restore still knows the beginning."""
    with untouched():
        assert killed_at(12, "after", lambda: tuner().apply(CAR))
        results, _ = tuner().apply(CAR)
        assert Outcome.RESTORED in outcomes(results)
        assert Outcome.APPLIED in outcomes(results)
        tuner().restore()


def case_what_another_changed_stays() -> None:
    """A governor set behind our back is reported and left alone."""
    path = f"{CPU}/cpufreq/policy1/scaling_governor"
    before = FS.read(path)
    with untouched():
        tuner().apply(CAR)
        FS.write(path, "powersave")
        drifted = [s for s in tuner().verify(CAR) if s.state is State.DRIFTED]
        assert [s.path for s in drifted] == [path], drifted
        results = tuner().restore()
        kept = [r for r in results if r.outcome is Outcome.CHANGED]
        assert [r.change.path for r in kept] == [path], kept
        assert FS.read(path) == "powersave"
        FS.write(path, before)


def case_a_managed_interrupt_is_unchangeable() -> None:
    """The disk's queues answer EIO: no error, and verify lets it pass."""
    config = Config(PROFILES["kiosk"], sound=nvme())
    with untouched():
        results, _ = tuner().apply(config)
        refused = [r for r in results if r.outcome is Outcome.UNCHANGEABLE]
        assert refused, results
        assert all("EIO" in r.detail for r in refused)
        states = {s.path: s.state for s in tuner().verify(config)}
        assert all(states[r.change.path] is State.UNCHANGEABLE for r in refused), states
        tuner().restore()


def case_numa_follows_the_device() -> None:
    """With the disk of node 1 as the device, cores and node are that node's."""
    placed = place(FS, Config(PROFILES["kiosk"], sound=nvme()))
    assert (placed.node, placed.voice) == (1, frozenset({2, 3})), placed


def case_an_offline_core() -> None:
    """It is left out of the plan; one that goes offline later is pending and then restored."""
    with untouched():
        FS.write(f"{CPU}/cpu3/online", "0")
        planned = [change.path for change in tuner().plan(CAR).changes]
        assert not [path for path in planned if "cpu3/" in path or "policy3" in path]
        FS.write(f"{CPU}/cpu3/online", "1")
        tuner().apply(CAR)
        FS.write(f"{CPU}/cpu3/online", "0")
        gone = tuner().restore()
        FS.write(f"{CPU}/cpu3/online", "1")
        tuner().restore()
        assert Outcome.RESTORED in outcomes(gone)
        time.sleep(0.2)


def case_errors_of_the_kernel() -> None:
    """The errors that the knobs are written for, from the real files."""
    assert refused(f"{CPU}/cpufreq/policy0/scaling_governor", "warp") == errno.EINVAL
    irq = FS.read("/sys/class/sound/card0/device/irq")
    no_such_cpu = (errno.EINVAL, errno.ERANGE, errno.EOVERFLOW)
    assert refused(f"/proc/irq/{irq}/smp_affinity_list", "77") in no_such_cpu
    assert refused("/proc/irq/0/smp_affinity_list", "1") == errno.EIO
    assert refused("/sys/devices/virtual/workqueue/cpumask", "zz") == errno.EINVAL
    assert refused("/sys/fs/cgroup/system.slice/cpuset.cpus", "77") in (errno.EINVAL, errno.ERANGE)


def case_irqbalance_is_told_and_keeps_its_own() -> None:
    """A running irqbalance with a ban of the admin's: ours is added, then taken away again."""
    Path("/run/irqbalance").mkdir(exist_ok=True)
    admins = FS.names("/proc/irq")[0]
    process = subprocess.Popen(["/usr/sbin/irqbalance", "--foreground", f"--banirq={admins}"])
    try:
        wait_for(lambda: bool(irqbalance.sockets(FS)))
        at_first = wait_for(lambda: irqbalance.banned(FS))
        assert int(admins) in at_first
        tuner().apply(CAR)
        ours = {int(c.path.partition(":")[2]) for c in applied() if c.knob == "irqbalance"}
        assert ours, "no ban was applied"
        assert irqbalance.banned(FS) == at_first | ours
        ok = {s.state for s in tuner().verify(CAR) if s.knob == "irqbalance"}
        assert ok == {State.OK}, ok
        tuner().restore()
        assert irqbalance.banned(FS) == at_first
    finally:
        process.kill()
        process.wait()


def case_deep_sleep_ends_on_the_cores_of_the_voice() -> None:
    """With the profile applied no core enters its deep idle state any more."""
    with allowing_deep_sleep(), untouched():
        assert deep_sleeps(1.0) > 20
        tuner().apply(CAR)
        time.sleep(0.3)
        assert deep_sleeps(1.0) == 0
        tuner().restore()


def case_memory_is_preferred_on_a_node() -> None:
    """A preferred node is read back, and pages come from it."""
    child = os.fork()
    if child == 0:
        grant = realtime.prefer_node(1)
        pages = bytearray(4 << 20)
        pages[::4096] = b"x" * len(pages[::4096])
        maps = Path("/proc/self/numa_maps").read_text()
        taken = [line for line in maps.splitlines() if "N1=" in line and "prefer" in line]
        good = grant.granted and taken
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def case_the_command_line() -> None:
    """The commands as typed, with their exit codes and JSON."""
    with untouched():
        code, body = command("plan", "--profile", "car", "--json")
        assert code == 0
        due = len(body["changes"])
        code, body = command("apply", "--profile", "car", "--json", "--measure", "0.2")
        assert (code, len(body["results"])) == (0, due)
        assert json.loads((JOURNAL / "latency.json").read_text())["after"]["count"] > 0
        assert command("verify", "--profile", "car", "--json")[0] == 0
        FS.write(f"{CPU}/cpufreq/policy3/scaling_governor", "powersave")
        assert command("verify", "--profile", "car", "--json")[0] == 1
        FS.write(f"{CPU}/cpufreq/policy3/scaling_governor", "performance")
        code, body = command("status", "--json")
        assert len(body["applied"]["entries"]) == due
        assert command("restore", "--json")[0] == 0
        assert command("status", "--json")[1] == {"applied": None}


def case_root_needs_no_capability() -> None:
    """As in the hardened unit: every capability dropped for good, and everything still applied."""
    with untouched():
        child = os.fork()
        if child == 0:
            for number in range(64):
                ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
            code = (
                "import sys; sys.path.insert(0, '/lib/utterd');"
                "from pathlib import Path; status = Path('/proc/self/status').read_text();"
                "assert 'CapEff:\\t0000000000000000' in status;"
                "from utterd.sysconfig.main import main;"
                "sys.exit(main(['apply', '--profile', 'car', '--json']))"
            )
            os._exit(subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert {s.state for s in tuner().verify(CAR)} <= {
            State.OK,
            State.PENDING,
            State.UNSUPPORTED,
        }
        assert outcomes(tuner().restore()) == {Outcome.RESTORED}


def command(*words: str) -> tuple[int, dict[str, Any]]:
    """Run the program's main and read what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(list(words))
    return code, json.loads(out.getvalue())


def applied() -> list[Change]:
    """Changes that the journal holds."""
    record = tuner().status()
    return [entry.change for entry in record.live()] if record else []


def refused(path: str, value: str) -> int:
    """Write something wrong; tell the errno."""
    try:
        FS.write(path, value)
    except OSError as error:
        return error.errno
    raise AssertionError(f"{path} took {value}")


def deep_sleeps(seconds: float) -> int:
    """Entries into the deepest idle state of all cores within a time."""

    def count() -> int:
        return sum(FS.number(f"{state}/usage") or 0 for state in deepest_states())

    before = count()
    time.sleep(seconds)
    return count() - before


def deepest_states() -> list[str]:
    """The deepest idle state of each core. In emulation it returns at once, so idling spins."""
    return [FS.match(f"{core}/cpuidle", "state*")[-1] for core in FS.match(CPU, "cpu[0-9]*")]


@contextlib.contextmanager
def allowing_deep_sleep() -> Iterator[None]:
    """Let cores enter it for a while."""
    for state in deepest_states():
        FS.write(f"{state}/disable", "0")
    yield
    for state in deepest_states():
        FS.write(f"{state}/disable", "1")


def wait_for(ready: Callable[[], object], seconds: float = 20) -> object:
    """Wait until something is true (errors count as not yet)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if found := ready():
                return found
        time.sleep(0.1)
    raise AssertionError("it did not come")


def prepare() -> None:
    """Slices as systemd makes them; deep sleep off but for its own case."""
    FS.write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")
    for state in deepest_states():
        FS.write(f"{state}/disable", "1")
    for name in ("system.slice", "user.slice"):
        Path(f"/sys/fs/cgroup/{name}").mkdir()


def clean_up() -> None:
    """After a case that failed: the machine as before, for the next one."""
    with contextlib.suppress(Exception):
        tuner().restore()
    shutil.rmtree(JOURNAL, ignore_errors=True)


if __name__ == "__main__":
    prepare()
    guests.run(globals(), clean_up)
