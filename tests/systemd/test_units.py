"""The installed units, as systemd itself judges them: no warning, little exposure."""

import os
import shutil
import subprocess

import pytest

from tests.systemd.installed import REPOSITORY

SYSTEM = ("utterd.service", "utterd-tune.service", "utterd.slice")


@pytest.fixture
def units(tmp_path):
    """The units as installed under a prefix of their own, with programs that exist."""
    for name in ("utterd", "utterd-tune"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        shutil.copy("/bin/true", program)
    for source in (REPOSITORY / "systemd").glob("utterd*"):
        if source.suffix in (".sysusers", ".tmpfiles"):
            continue
        folder = tmp_path / ("user" if "user" in source.name else "system")
        folder.mkdir(exist_ok=True)
        name = source.name.removesuffix(".in").replace("-user", "")
        (folder / name).write_text(source.read_text().replace("@PREFIX@", str(tmp_path)))
    return tmp_path


def add_drop_in(units, unit, example):
    folder = units / f"system/{unit}.d"
    folder.mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / f"systemd/examples/{example}", folder)


def analyze(units, *arguments):
    runtime = units / "runtime"
    runtime.mkdir(exist_ok=True)
    path = f"{units / ('user' if '--user' in arguments else 'system')}:"
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": path, "XDG_RUNTIME_DIR": str(runtime)}
    command = ["systemd-analyze", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("unit", SYSTEM)
def test_verify_has_nothing_to_say(units, unit):
    done = analyze(units, "verify", "--man=no", str(units / "system" / unit))
    assert (done.returncode, done.stderr) == (0, "")


def test_verify_has_nothing_to_say_of_the_user_unit(units):
    done = analyze(units, "--user", "verify", "--man=no", str(units / "user/utterd.service"))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("unit", "example"),
    [
        ("utterd.service", "gpu.conf"),
        ("utterd.service", "tcp.conf"),
        ("utterd-tune.service", "gpu-tune.conf"),
    ],
)
def test_verify_has_nothing_to_say_of_the_examples(units, unit, example):
    add_drop_in(units, unit, example)
    done = analyze(units, "verify", "--man=no", str(units / "system" / unit))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("unit", "examples", "threshold"),
    [
        ("utterd.service", (), 10),
        ("utterd.service", ("gpu.conf",), 15),
        ("utterd.service", ("gpu.conf", "tcp.conf"), 15),
        ("utterd-tune.service", (), 20),
    ],
)
def test_exposure_is_small(units, unit, examples, threshold):
    for example in examples:
        add_drop_in(units, unit, example)
    file = str(units / "system" / unit)
    done = analyze(units, "security", "--offline=yes", f"--threshold={threshold}", file)
    assert done.returncode == 0, done.stdout[-400:]


def test_the_threshold_is_one_that_can_be_missed(units):
    """Guard against a security check that always passes."""
    (units / "system/bare.service").write_text(f"[Service]\nExecStart={units}/bin/utterd\n")
    file = str(units / "system/bare.service")
    assert analyze(units, "security", "--offline=yes", "--threshold=20", file).returncode != 0


def test_a_broken_unit_would_be_seen(units):
    """systemd-analyze exits 0 on unknown keys: only its words tell."""
    (units / "system/odd.service").write_text(
        f"[Service]\nExecStart={units}/bin/utterd\nColour=red\n"
    )
    done = analyze(units, "verify", "--man=no", str(units / "system/odd.service"))
    assert "Colour" in done.stderr


@pytest.mark.parametrize("name", ["sysusers", "tmpfiles"])
def test_users_and_folders_are_well_formed(tmp_path, name):
    (tmp_path / "etc").mkdir()
    file = REPOSITORY / f"systemd/utterd.{name}"
    command = [f"systemd-{name}", f"--root={tmp_path}", str(file)]
    if name == "tmpfiles":
        users = ["systemd-sysusers", f"--root={tmp_path}", str(file.with_suffix(".sysusers"))]
        subprocess.run(users, check=True, capture_output=True, timeout=60)
        command.insert(1, "--create")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    if name == "sysusers":
        assert "utterd:" in (tmp_path / "etc/passwd").read_text()
    else:
        assert (tmp_path / "var/lib/utterd/voices").is_dir()
