"""One suite for all knobs: each is applied, absent, refused, changed by another, restored."""

import errno

import pytest

from tests.sysconfig import machines
from tests.sysconfig.conftest import CAR
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Outcome, State, Target
from utterd.sysconfig.plan import plan
from utterd.sysconfig.registry import BY_NAME, KNOBS
from utterd.sysconfig.sysfs import Sysfs

WRITERS = (
    "energy",
    "governor",
    "gpu_clocks",
    "gpu_persistence",
    "idle",
    "interrupts",
    "isolation",
    "network",
)
"""Knobs that change something on the made-up machine. (`irqbalance` has its own tests.)"""
FILES = [name for name in WRITERS if not name.startswith("gpu")]

OTHERS = {"governor": "schedutil", "energy": "power", "network": "70000", "idle": "500"}
"""What someone else sets behind our back."""

COMMON = {
    errno.EAGAIN: Outcome.PENDING,
    errno.EBUSY: Outcome.PENDING,
    errno.ENOMEM: Outcome.PENDING,
    errno.ENOSPC: Outcome.PENDING,
    errno.EINVAL: Outcome.UNSUPPORTED,
    errno.ENOENT: Outcome.UNSUPPORTED,
    errno.ENODEV: Outcome.UNSUPPORTED,
    errno.ENOTSUP: Outcome.UNSUPPORTED,
    errno.EIO: Outcome.UNCHANGEABLE,
    errno.EPERM: Outcome.REFUSED,
    errno.EACCES: Outcome.REFUSED,
    errno.EROFS: Outcome.REFUSED,
}
IRQ = COMMON | {
    errno.EINVAL: Outcome.PENDING,
    errno.ERANGE: Outcome.PENDING,
    errno.ENODEV: Outcome.UNCHANGEABLE,
    errno.ENOTSUP: Outcome.UNCHANGEABLE,
    errno.EOVERFLOW: Outcome.UNCHANGEABLE,
}


def changes_of(box, name):
    return [change for change in box.tuner().plan(CAR).changes if change.knob == name]


def test_every_knob_is_tried_here():
    others = {"conflicts", "gpu_power", "irqbalance", "memory", "numa", "pcie"}
    assert {knob.name for knob in KNOBS} == set(WRITERS) | others
    assert len(BY_NAME) == len(KNOBS)


@pytest.mark.parametrize("name", WRITERS)
def test_applied_verified_and_restored(box, name):
    before = box.snapshot()
    planned = changes_of(box, name)
    assert planned
    assert box.snapshot() == before, "a plan writes nothing"
    results, _ = box.tuner().apply(CAR)
    assert {r.outcome for r in results if r.change.knob == name} == {Outcome.APPLIED}
    assert changes_of(box, name) == [], "applying is idempotent"
    states = {s.state for s in box.tuner().verify(CAR) if s.knob == name}
    assert states <= {State.OK, State.PENDING}
    assert {r.outcome for r in box.tuner().restore()} == {Outcome.RESTORED}
    assert box.snapshot() == before


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_a_machine_without_it_is_no_error(tmp_path, knob: Knob):
    root = machines.build(tmp_path, cores=1, cpufreq=False, sound=False, gpu=False)
    for path in ("proc/sys", "sys/devices/virtual", "sys/fs"):
        bare(root / path)
    for path in root.glob("sys/devices/system/cpu/cpu*/power"):
        bare(path)
    items = list(knob.targets(Machine(Sysfs(root)), CAR))
    assert not [item for item in items if isinstance(item, Target)]
    assert all(item.level in (Level.UNSUPPORTED, Level.ADVICE, Level.INFO) for item in items)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_the_desktop_touches_nothing(box, knob: Knob):
    machine = Machine(box.fs)
    items = list(knob.targets(machine, Config(PROFILES["desktop"])))
    assert not [item for item in items if isinstance(item, Target)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("code", sorted(IRQ), ids=lambda code: errno.errorcode[code])
def test_a_refused_write_is_classified_and_leaves_the_rest_applied(box, name, code):
    table = IRQ if name == "interrupts" else COMMON
    expected = table.get(code, Outcome.REFUSED)
    box.fs = machines.FaultySysfs(box.root)
    before = box.snapshot()
    due = box.tuner().plan(CAR).changes
    path = next(change.path for change in due if change.knob == name)
    box.fs.refuse_writes[path] = code
    results, _ = box.tuner().apply(CAR)
    assert {r.change.path: r.outcome for r in results}[path] is expected
    others = {r.outcome for r in results if r.change.path != path}
    assert others == {Outcome.APPLIED}
    state = next(s for s in box.tuner().verify(CAR) if s.path == path)
    if expected is Outcome.REFUSED:
        assert state.state is State.DRIFTED
    else:
        assert state.state.value == expected.value
    del box.fs.refuse_writes[path]
    assert {r.outcome for r in box.tuner().restore()} == {Outcome.RESTORED}
    assert box.snapshot() == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("code", [errno.EBUSY, errno.EIO, errno.EACCES, errno.ENODEV])
def test_an_unreadable_setting_is_reported_and_skipped(box, name, code):
    path = changes_of(box, name)[0].path
    box.fs.refuse_reads[path] = code
    due = box.tuner().plan(CAR)
    assert path not in {change.path for change in due.changes}
    if name not in ("network", "idle"):  # these two see nothing where they can't read
        assert path in {note.path for note in due.notes}
    box.tuner().apply(CAR)
    box.tuner().restore()


@pytest.mark.parametrize("name", FILES)
def test_what_another_changed_is_drifted_and_stays(box, name):
    change = changes_of(box, name)[0]
    box.tuner().apply(CAR)
    other = OTHERS.get(name, "1")
    Sysfs(box.root).write(change.path, other)
    state = next(s for s in box.tuner().verify(CAR) if s.path == change.path)
    assert (state.state, state.want) == (State.DRIFTED, change.new)
    results = {r.change.path: r for r in box.tuner().restore()}
    assert results[change.path].outcome is Outcome.CHANGED
    assert box.fs.get(change.path) == other
    assert box.tuner().status() is None


@pytest.mark.parametrize("name", FILES)
def test_a_drifted_setting_is_set_again_and_restored_to_what_was_there(box, name):
    change = changes_of(box, name)[0]
    box.tuner().apply(CAR)
    other = OTHERS.get(name, "1")
    Sysfs(box.root).write(change.path, other)
    again, _ = box.tuner().apply(CAR)
    assert change.path in [r.change.path for r in again]
    box.tuner().restore()
    assert box.fs.get(change.path) == other, "what stood there last before us"


def test_energy_goes_back_after_the_governor(box):
    """The drivers take no other preference under governor performance: order decides."""
    box.tuner().apply(CAR)
    box.fs.written.clear()
    box.tuner().restore()
    paths = [path for path, _ in box.fs.written if "policy7" in path]
    assert [path.rpartition("/")[2] for path in paths] == [
        "scaling_governor",
        "energy_performance_preference",
    ]


def test_a_driver_that_offers_no_such_governor_is_unsupported(box):
    path = "/sys/devices/system/cpu/cpufreq/policy7/scaling_available_governors"
    Sysfs(box.root).write(path, "schedutil ondemand")
    notes = [n for n in box.tuner().plan(CAR).notes if n.knob == "governor"]
    assert [n.level for n in notes] == [Level.UNSUPPORTED]
    assert "schedutil, ondemand" in notes[0].text


def test_a_stricter_latency_limit_stays(box):
    strict = "/sys/devices/system/cpu/cpu7/power/pm_qos_resume_latency_us"
    for value in ("5", "n/a"):
        Sysfs(box.root).write(strict, value)
        assert strict not in [change.path for change in box.tuner().plan(CAR).changes]


def test_a_looser_profile_loosens_what_was_ours(box):
    box.tuner().apply(Config(PROFILES["benchmark"]))
    results, _ = box.tuner().apply(Config(PROFILES["kiosk"]))
    limit = "/sys/devices/system/cpu/cpu7/power/pm_qos_resume_latency_us"
    assert box.fs.get(limit) == "100"
    assert Outcome.RESTORED in {r.outcome for r in results}
    governor = "/sys/devices/system/cpu/cpufreq/policy7/scaling_governor"
    assert box.fs.get(governor) == "powersave", "the kiosk leaves the governor"


def test_buffers_are_never_lowered(tmp_path):
    root = machines.build(tmp_path, buffers=4_194_304)
    due = plan(Machine(Sysfs(root)), CAR)
    assert "network" not in {change.knob for change in due.changes}


def test_a_shared_interrupt_is_left_where_it_is(box):
    Sysfs(box.root).write("/sys/kernel/irq/33/actions", "snd_hda_intel:card0,ehci_hcd")
    due = box.tuner().plan(CAR)
    assert "/proc/irq/33/smp_affinity_list" not in [change.path for change in due.changes]
    assert any("ehci_hcd" in note.text for note in due.notes)


def test_an_interrupt_is_pending_until_the_next_one_comes(box):
    box.tuner().apply(CAR)
    states = {s.path: s for s in box.tuner().verify(CAR)}
    assert states["/proc/irq/33/smp_affinity_list"].state is State.PENDING
    Sysfs(box.root).write("/proc/irq/33/effective_affinity_list", "7")
    states = {s.path: s for s in box.tuner().verify(CAR)}
    assert states["/proc/irq/33/smp_affinity_list"].state is State.OK


def test_sound_and_gpu_interrupts_go_to_their_own_cores(box):
    due = {change.path: change.new for change in box.tuner().plan(CAR).changes}
    assert due["/proc/irq/33/smp_affinity_list"] == "7"
    assert due["/proc/irq/40/smp_affinity_list"] == "4-6"


def test_isolation_keeps_everyone_else_off_the_audio_core(box):
    due = {change.path: change.new for change in box.tuner().plan(CAR).changes}
    assert due["/sys/devices/virtual/workqueue/cpumask"] == "7f"
    assert due["/sys/fs/cgroup/system.slice/cpuset.cpus"] == "0-6"


def test_too_few_cores_are_not_isolated(tmp_path):
    root = machines.build(tmp_path, cores=2)
    due = plan(Machine(Sysfs(root)), CAR)
    assert "isolation" not in {change.knob for change in due.changes}
    assert any("too few" in note.text for note in due.notes)


def test_a_narrow_link_is_reported(box):
    link = "/sys/bus/pci/devices/0000:01:00.0/current_link_width"
    Sysfs(box.root).write(link, "4")
    texts = [note.text for note in box.tuner().plan(CAR).notes if note.knob == "pcie"]
    assert texts == ["NVIDIA: link width 4 of 16 lanes; reseat the card or use another slot"]


def test_a_slow_port_is_no_fault_of_the_card(box):
    for end in ("0000:01:00.0", "0000:00:01.0"):
        Sysfs(box.root).write(f"/sys/bus/pci/devices/{end}/current_link_speed", "8.0 GT/s PCIe")
    Sysfs(box.root).write("/sys/bus/pci/devices/0000:00:01.0/max_link_speed", "8.0 GT/s PCIe")
    assert not [note for note in box.tuner().plan(CAR).notes if note.knob == "pcie"]


def test_memory_settings_are_advice(box):
    put = machines._Tree(box.root)
    put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    put("proc/sys/vm/swappiness", "60")
    put("proc/swaps", "Filename Type Size\n/dev/sda2 partition 1")
    due = box.tuner().plan(CAR)
    levels = [note.level for note in due.notes if note.knob == "memory"]
    assert levels == [Level.ADVICE, Level.ADVICE]
    assert "memory" not in {change.knob for change in due.changes}


@pytest.mark.parametrize("rival", ["tuned", "power-profiles-daemon", "tlp", "cpupower"])
def test_rivals_are_named(box, rival):
    mark = box.root / f"run/systemd/units/invocation:{rival}.service"
    mark.parent.mkdir(parents=True)
    mark.symlink_to("0123456789abcdef")
    notes = [note for note in box.tuner().plan(CAR).notes if note.knob == "conflicts"]
    assert [(note.path, note.level) for note in notes] == [(rival, Level.CONFLICT)]


def test_a_rival_process_is_known_by_its_cut_name(box):
    machines._Tree(box.root)("proc/4711/comm", "power-profiles-")
    notes = [note for note in box.tuner().plan(CAR).notes if note.knob == "conflicts"]
    assert [note.path for note in notes] == ["power-profiles-daemon"]


def test_numa_names_the_node_of_the_device(tmp_path):
    root = machines.build(tmp_path, nodes=2)
    machines._Tree(root)("proc/sys/kernel/numa_balancing", "1")
    notes = [n for n in plan(Machine(Sysfs(root)), CAR).notes if n.knob == "numa"]
    assert notes[0] == Note(
        "numa", "/sys/devices/system/node", Level.INFO, "speech prefers node 1, cores 4-7"
    )
    assert notes[1].level is Level.ADVICE


def bare(path):
    """Remove a folder and all in it."""
    for inner in sorted(path.rglob("*"), reverse=True):
        inner.rmdir() if inner.is_dir() else inner.unlink()
