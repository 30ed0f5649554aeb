"""A process really killed (SIGKILL) at every write it makes, and what `restore` makes of it."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sysconfig import machines
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.journal import Journal, JournalError
from utterd.sysconfig.knob import Machine, Outcome
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Tuner

CONFIG = Config(PROFILES["kiosk"])
PROGRAM = Path(__file__).with_name("killed_tuner.py")


@pytest.fixture
def root(tmp_path):
    return machines.build(tmp_path / "root", cores=2, buffers=65536)


def tuner(root):
    return Tuner(Machine(Sysfs(root)), Journal(root.parent / "journal"))


@pytest.mark.parametrize("how", ["before", "half", "after"])
@pytest.mark.parametrize("act", ["apply", "restore"])
def test_killed_at_every_write(root, how, act):
    """One interpreter forks a victim for each n; each victim is killed at its n-th write."""
    before = machines.snapshot(root)
    writes = 2 * len(tuner(root).plan(CONFIG).changes)
    command = [sys.executable, str(PROGRAM), str(root), str(root.parent / "journal"), act, how]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])},
    )
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout)
    assert killed >= writes, "every write must have had its victim"
    assert machines.snapshot(root) == before
    assert not (root.parent / "journal/journal.jsonl").exists()


def test_a_victim_leaves_a_journal_that_apply_recovers_from(root):
    before = machines.snapshot(root)
    child = os.fork()
    if child == 0:
        kill_self_after_first_change(root)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert machines.snapshot(root) != before
    results, _ = tuner(root).apply(CONFIG)
    assert results[0].outcome is Outcome.RESTORED, "recovery comes first"
    assert tuner(root).status().complete
    tuner(root).restore()
    assert machines.snapshot(root) == before


def kill_self_after_first_change(root):
    class Deadly(Sysfs):
        def write(self, path: str, value: str) -> None:
            super().write(path, value)
            os.kill(os.getpid(), signal.SIGKILL)

    Tuner(Machine(Deadly(root)), Journal(root.parent / "journal")).apply(CONFIG)
    os._exit(1)


def test_a_full_disk_stops_before_the_write_it_could_not_record(root, monkeypatch):
    """No journal, no change: every number of lines that still fit."""
    before = machines.snapshot(root)
    real = os.write
    for room in range(1, 40):
        left = [room]

        def write(handle, data, left=left):
            if data.startswith(b"{"):
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
            return real(handle, data)

        monkeypatch.setattr(os, "write", write)
        finished = False
        with contextlib.suppress(JournalError):
            tuner(root).apply(CONFIG)
            finished = True
        monkeypatch.setattr(os, "write", real)
        tuner(root).restore()
        assert machines.snapshot(root) == before
        if finished:
            return
    pytest.fail("it never fitted")


def test_a_line_cut_short_is_dropped_and_the_next_one_starts_afresh(root):
    tuner(root).apply(CONFIG)
    file = root.parent / "journal/journal.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"intend": 99, "kn')
    assert tuner(root).status().complete
    Sysfs(root).write("/proc/sys/net/core/wmem_max", "70000")
    tuner(root).apply(CONFIG)
    assert b"kn{" not in file.read_bytes()
    tuner(root).restore()


def test_a_damaged_journal_is_named_and_nothing_is_touched(root):
    tuner(root).apply(CONFIG)
    after = machines.snapshot(root)
    file = root.parent / "journal/journal.jsonl"
    file.write_text("rubbish\n" + file.read_text())
    for act in (tuner(root).restore, lambda: tuner(root).apply(CONFIG)):
        with pytest.raises(JournalError, match="damaged"):
            act()
    assert machines.snapshot(root) == after


def test_a_journal_of_an_earlier_boot_is_dropped(root):
    tuner(root).apply(CONFIG)
    Sysfs(root).write("/proc/sys/kernel/random/boot_id", "boot-2")
    assert tuner(root).status() is None
    assert tuner(root).restore() == []
    assert not (root.parent / "journal/journal.jsonl").exists()


def test_two_tuners_never_work_at_once(root):
    journal = Journal(root.parent / "journal")
    with journal.locked(), pytest.raises(JournalError, match="another"):
        tuner(root).apply(CONFIG)


def test_a_folder_that_can_not_be_made(root):
    (root.parent / "file").write_text("")
    with pytest.raises(JournalError, match="--journal"):
        Tuner(Machine(Sysfs(root)), Journal(root.parent / "file/journal")).apply(CONFIG)


def test_what_could_not_be_restored_is_tried_again(tmp_path):
    root = machines.build(tmp_path / "root", cores=2)
    before = machines.snapshot(root)
    fs = machines.FaultySysfs(root)
    stubborn = Tuner(Machine(fs), Journal(tmp_path / "journal"))
    stubborn.apply(CONFIG)
    path = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us"
    fs.refuse_writes[path] = errno.EBUSY
    assert Outcome.PENDING in {r.outcome for r in stubborn.restore()}
    fs.refuse_writes.clear()
    results = stubborn.restore()
    assert [r.change.path for r in results] == [path], "the rest was settled"
    assert machines.snapshot(root) == before
