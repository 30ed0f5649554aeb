"""Each check on a made-up machine: fine, and with the fault it is for; the table, JSON, bundle."""

import importlib.metadata
import io
import json
import os
import socket
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sysconfig import machines
from utterd.sysconfig import bundle, doctor
from utterd.sysconfig.check import Finding, Scene, Verdict, broken, fine, warning
from utterd.sysconfig.checks import files, gpu, latency, machine, rights, sound
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.journal import Journal
from utterd.sysconfig.knob import Machine
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Tuner

CPU = "sys/devices/system/cpu"


@pytest.fixture
def put(tmp_path):
    return machines._Tree(machines.build(tmp_path / "examined"))


@pytest.fixture
def scene(put, tmp_path):
    return Scene(
        fs=Sysfs(put.root),
        config=Config(PROFILES["kiosk"]),
        journal=tmp_path / "journal",
        data=tmp_path / "data",
        run=tmp_path / "run",
        runtime_dir="/run/user/1000",
        seconds=0.05,
    )


def verdicts(check, scene):
    return [finding.verdict for finding in check(scene)]


def card(put, *, rates="44100 48000"):
    put("proc/asound/card0/id", "PCH")
    put("proc/asound/card0/codec#0", f"Codec: X\n  rates [0x60]: {rates}\n  bits [0xe]: 16")
    put("proc/asound/card0/pcm0p/sub0/status", "closed")


def test_a_card_with_its_rates(put, scene):
    card(put)
    found = list(sound.cards(scene))
    assert [f.verdict for f in found] == [Verdict.FINE, Verdict.FINE]
    assert found[1].found == "44100, 48000 Hz"


def test_a_card_without_the_common_rate(put, scene):
    card(put, rates="32000 44100")
    assert verdicts(sound.cards, scene) == [Verdict.FINE, Verdict.WARNING]


def test_no_card_is_broken_unless_a_server_answers(put, scene):
    assert verdicts(sound.cards, scene) == [Verdict.BROKEN]
    with listening(put, "run/user/1000/pipewire-0"):
        assert verdicts(sound.cards, scene) == [Verdict.WARNING]


def test_who_holds_the_card(put, scene):
    card(put)
    assert list(sound.holders(scene)) == [fine("sound device", "free")]
    put("proc/asound/card0/pcm0p/sub0/status", "state: RUNNING\nowner_pid   : 77")
    put("proc/77/comm", "mpv")
    (held,) = sound.holders(scene)
    assert held.verdict is Verdict.WARNING
    assert held.mend == "end it: kill 77"
    put("proc/77/comm", "pipewire")
    assert verdicts(sound.holders, scene) == [Verdict.FINE]


def test_a_holder_is_found_by_its_descriptors(put, scene):
    put("proc/88/comm", "aplay")
    (put.root / "proc/88/fd").mkdir()
    (put.root / "proc/88/fd/5").symlink_to("/dev/snd/pcmC0D0p")
    (held,) = sound.holders(scene)
    assert "aplay (process 88) has /dev/snd/pcmC0D0p open" in held.found


def test_sound_servers_reached_and_refused(put, scene):
    assert verdicts(sound.server, scene) == [Verdict.FINE]
    with listening(put, "run/user/1000/pulse/native"):
        (answer,) = sound.server(scene)
        assert "PulseAudio answers" in answer.found
    (dead,) = sound.server(scene)
    assert dead.verdict is Verdict.WARNING
    assert "refused" in dead.found


def test_sound_devices_that_this_user_may_not_open(put, scene, monkeypatch):
    assert list(rights.groups(scene)) == []
    put("dev/snd/pcmC0D0p", "")
    assert verdicts(rights.groups, scene) == [Verdict.FINE]
    monkeypatch.setattr(os, "access", lambda *_: False)
    (shut,) = rights.groups(scene)
    assert "usermod -aG audio" in shut.mend


def test_limits_of_an_ordinary_user(scene, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(rights.resource, "getrlimit", lambda _: (0, 0))
    assert verdicts(rights.limits, scene) == [Verdict.WARNING, Verdict.WARNING]
    monkeypatch.setattr(rights.resource, "getrlimit", lambda _: (1 << 40, 1 << 40))
    assert verdicts(rights.limits, scene) == [Verdict.FINE, Verdict.FINE]


def test_real_time_groups_are_named(put, scene):
    put("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000")
    assert list(rights.limits(scene))[-1].name == "real-time groups"


def test_the_socket_of_the_daemon(scene):
    assert verdicts(rights.sockets, scene) == [Verdict.WARNING]
    scene.run.mkdir()
    control = scene.run / "control.sock"
    control.touch(mode=0o660)
    control.chmod(0o660)
    assert verdicts(rights.sockets, scene) == [Verdict.FINE]
    control.chmod(0o666)
    (open_to_all,) = rights.sockets(scene)
    assert "chmod 0660" in open_to_all.mend


def test_the_socket_is_not_for_this_user(scene, monkeypatch):
    scene.run.mkdir()
    (scene.run / "control.sock").touch()
    (scene.run / "control.sock").chmod(0o660)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert verdicts(rights.sockets, scene) == [Verdict.BROKEN]


def test_a_lazy_governor(put, scene):
    assert verdicts(machine.governor, scene) == [Verdict.WARNING]
    for cpu in range(8):
        put(f"{CPU}/cpufreq/policy{cpu}/energy_performance_preference", "balance_performance")
    assert verdicts(machine.governor, scene) == [Verdict.FINE]


def test_tuning_applied_drifted_and_interrupted(box, scene):
    scene = replace(scene, fs=box.fs, journal=box.folder, config=Config(PROFILES["kiosk"]))
    assert verdicts(machine.tuning, scene) == [Verdict.FINE]
    Tuner(Machine(box.fs), Journal(box.folder)).apply(scene.config)
    assert verdicts(machine.tuning, scene) == [Verdict.FINE]
    limit = "/sys/devices/system/cpu/cpu7/power/pm_qos_resume_latency_us"
    Sysfs(box.root).write(limit, "500")
    (drifted,) = machine.tuning(scene)
    assert drifted.verdict is Verdict.WARNING
    assert limit in drifted.found
    journal = box.folder / "journal.jsonl"
    journal.write_text("rubbish\n")
    assert verdicts(machine.tuning, scene) == [Verdict.BROKEN]


def test_rivals_and_memory(put, scene):
    assert list(machine.rivals(scene)) == []
    put("proc/5/comm", "tuned")
    put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    found = list(machine.rivals(scene))
    assert [finding.name for finding in found] == ["rival", "memory"]
    assert found[0].mend == "keep one of the two: systemctl disable --now tuned"


def test_interrupts_shared_and_moved_about(put, scene):
    assert verdicts(machine.interrupts, scene) == [Verdict.FINE]
    put("proc/6/comm", "irqbalance")
    (moved,) = machine.interrupts(scene)
    assert "--banirq=33" in moved.mend
    put("sys/kernel/irq/33/actions", "snd_hda_intel,i915")
    (shared,) = machine.interrupts(scene)
    assert "shared with i915" in shared.found


def test_heat_and_quota(put, scene):
    assert verdicts(machine.throttling, scene) == [Verdict.FINE]
    put(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", "12")
    put("sys/fs/cgroup/utterd.slice/utterd.service/cpu.max", "95000 100000")
    found = list(machine.throttling(scene))
    assert [finding.verdict for finding in found] == [Verdict.WARNING, Verdict.WARNING]
    assert "CPUWeight" in found[1].mend


def test_a_narrow_link(put, scene):
    assert list(machine.links(scene)) == []
    put("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_width", "1")
    assert verdicts(machine.links, scene) == [Verdict.WARNING]


def test_a_slow_clock(put, scene):
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")
    assert next(iter(machine.clock(scene))).verdict is Verdict.WARNING
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")
    assert next(iter(machine.clock(scene))).verdict is Verdict.FINE


def test_a_gpu_without_a_driver_is_broken_and_none_is_fine(put, scene, tmp_path):
    assert verdicts(gpu.gpu, scene) == [Verdict.BROKEN]
    bare = Sysfs(machines.build(tmp_path / "bare", gpu=False))
    assert verdicts(gpu.gpu, replace(scene, fs=bare)) == [Verdict.FINE]


@pytest.mark.parametrize(
    ("installed", "count"),
    [
        ({"onnxruntime": "1.20"}, 0),
        ({"onnxruntime": "1.20", "onnxruntime-gpu": "1.20"}, 1),
        ({"nvidia-cuda-runtime-cu12": "12.6"}, 0),
        ({"nvidia-cuda-runtime-cu13": "13.0"}, 1),
        ({"nvidia-cuda-runtime": "13.1"}, 1),
        ({"tensorrt-cu13": "10.13"}, 1),
    ],
)
def test_libraries_that_do_not_fit_the_driver(scene, monkeypatch, installed, count):
    class Distribution:
        def __init__(self, name, version):
            self.name, self.version = name, version

    found = [Distribution(*item) for item in installed.items()]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: found)
    monkeypatch.setattr(gpu, "_driver_cuda", lambda _: 12)
    assert len(list(gpu.libraries(scene))) == count


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(1 << 20, Verdict.BROKEN), (1 << 29, Verdict.WARNING), (1 << 34, Verdict.FINE)],
)
def test_disk_space(scene, monkeypatch, free, verdict):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: usage)
    assert verdicts(files.space, scene) == [verdict]


def test_versions_of_what_is_installed_here(scene):
    (found,) = files.versions(scene)
    assert found.verdict is Verdict.FINE
    assert int(found.found.split()[0]) > 5


def test_a_library_that_is_too_old(scene, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["msgspec>=99", "none>=1"])
    found = list(files.versions(scene))
    assert [finding.verdict for finding in found[:2]] == [Verdict.BROKEN, Verdict.BROKEN]
    assert found[0].mend == "pip install 'msgspec>=99'"
    assert "is missing" in found[1].found


def test_wake_ups_now_and_around_tuning(scene):
    assert [f.name for f in latency.wake_up(scene)] == ["wake-up latency", "clock jump"]
    figures = {
        "count": 9,
        "median_us": 1.0,
        "p99_us": 2.0,
        "max_us": 3.0,
        "floor_us": 0.5,
        "cpu": 0,
        "realtime": True,
    }
    scene.journal.mkdir()
    body = json.dumps({"before": figures, "after": figures})
    (scene.journal / "latency.json").write_text(body)
    around = list(latency.wake_up(scene))[1]
    assert around.found.startswith("before: median 1, p99 2, max 3 us (real-time")


def test_a_jump_of_the_wall_clock(scene, monkeypatch):
    real, calls = time.time, []

    def jumping():
        calls.append(1)
        return real() + (3600 if len(calls) > 1 else 0)

    monkeypatch.setattr(latency.time, "time", jumping)
    jump = list(latency.wake_up(scene))[-1]
    assert jump.verdict is Verdict.WARNING
    assert "3600" in jump.found


def test_late_wake_ups(scene, monkeypatch):
    late = latency.Wakeups(10, 5.0, 900.0, 30_000.0, 1.0, 0, False)
    monkeypatch.setattr(latency, "measure", lambda *_: late)
    assert next(iter(latency.wake_up(scene))).verdict is Verdict.WARNING


def run(capsys, *words, checks=()):
    code = doctor.main(["--seconds", "0.05", *words], checks)
    return code, capsys.readouterr().out


def test_the_table_and_the_exit_codes(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", ())
    assert run(capsys, checks=[lambda _: [fine("a", "b")]])[0] == 0
    found = [fine("a", "b"), warning("c", "d", "it is slow", "do this")]
    code, shown = run(capsys, checks=[lambda _: found])
    assert code == 1
    assert shown.endswith("c: it is slow.\n    do this\n")
    found.append(broken("e", "f", "silent", "do that"))
    code, shown = run(capsys, checks=[lambda _: found])
    assert code == 2
    assert shown.index("e: silent") < shown.index("c: it is slow"), "the worst comes first"


def test_a_check_that_fails_is_a_finding(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", ())

    def explode(_scene):
        raise RuntimeError("boom")

    code, shown = run(capsys, "--json", checks=[explode, lambda _: [fine("a", "b")]])
    body = json.loads(shown)
    assert (code, body["verdict"]) == (2, "broken")
    assert "boom" in body["findings"][0]["found"]
    assert len(body["findings"]) == 2


def test_every_check_runs_on_this_machine(capsys, tmp_path):
    code, shown = run(capsys, "--json", "--data", str(tmp_path), "--run", str(tmp_path))
    body = json.loads(shown)
    assert code == {"fine": 0, "warning": 1, "broken": 2}[body["verdict"]]
    assert not [f for f in body["findings"] if "could not be examined" in f["found"]]
    troubled = [f for f in body["findings"] if f["verdict"] != "fine"]
    assert all(f["why"] and f["mend"] for f in troubled)


def test_voices_and_sockets_are_looked_for_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_DATA", (str(tmp_path / "service"), str(tmp_path / "mine")))
    monkeypatch.setattr(doctor, "_RUN", (str(tmp_path / "run"), "$XDG_RUNTIME_DIR/utterd"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "user"))
    monkeypatch.delenv("UTTERD_DATA", raising=False)
    nothing = doctor._parser().parse_args([])
    assert (nothing.data, nothing.run) == (tmp_path / "service", tmp_path / "run")
    for path in ("mine/voices/joe/voice.toml", "user/utterd/control.sock"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    found = doctor._parser().parse_args([])
    assert (found.data, found.run) == (tmp_path / "mine", tmp_path / "user/utterd")
    monkeypatch.setenv("UTTERD_DATA", "/elsewhere")
    assert str(doctor._parser().parse_args([]).data) == "/elsewhere"


def test_a_bad_configuration_is_a_finding(capsys, tmp_path):
    code, shown = run(capsys, "--config", str(tmp_path / "none.toml"))
    assert code == 2
    assert "configuration" in shown


def test_a_bundle_without_names(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "CHECKS", ())
    monkeypatch.setattr(bundle, "user", lambda: "maria")
    monkeypatch.setattr(socket, "gethostname", lambda: "marias-car")
    text = "/home/maria/x of maria at marias-car 10.1.2.3 aa:bb:cc:dd:ee:ff m.x@example.org"
    secret = Finding("sound device", Verdict.FINE, f"{text} {Path.home()}/voices")
    path = tmp_path / "bundle.tar.gz"
    code, shown = run(capsys, "--bundle", str(path), checks=[lambda _: [secret]])
    assert code == 0
    assert str(path) in shown
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as tar:
        names = tar.getnames()
        whole = b"".join(tar.extractfile(name).read() for name in names).decode()
    assert "utterd-doctor/findings.json" in names
    assert "utterd-doctor/proc_cpuinfo" in names
    for private in ("maria", "10.1.2.3", "aa:bb", "example.org", str(Path.home())):
        assert private not in whole
    assert "USER at HOST ADDRESS ADDRESS ADDRESS ~/voices" in whole


class listening:  # noqa: N801 - reads as a phrase
    """A socket that answers, at a path of the made-up machine."""

    def __init__(self, put, path):
        self._path = put.root / path
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self):
        self._socket.bind(str(self._path))
        self._socket.listen()

    def __exit__(self, *_):
        self._socket.close()
