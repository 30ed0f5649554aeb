"""`make install` into a staging folder, and `make uninstall` that leaves nothing of it."""

import subprocess

import pytest

from tests.systemd import installed
from utterd.engine.voices import package

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EXPECTED = {
    "bin/utterd",
    "bin/utterd-tune",
    "lib/systemd/system/utterd.service",
    "lib/systemd/system/utterd-tune.service",
    "lib/systemd/system/utterd.slice",
    "lib/systemd/user/utterd.service",
    "lib/sysusers.d/utterd.conf",
    "lib/tmpfiles.d/utterd.conf",
    "share/doc/utterd/README.md",
    "share/doc/utterd/examples/gpu.conf",
}


def test_everything_is_in_its_place(staged):
    local = staged / "usr/local"
    found = {str(path.relative_to(local)) for path in local.rglob("*")}
    assert found >= EXPECTED
    assert {path.name for path in staged.iterdir()} == {"usr"}
    text = (staged / "usr/local/lib/systemd/system/utterd.service").read_text()
    assert "ExecStart=/usr/local/bin/utterd serve" in text


def test_the_built_in_voice_is_there_with_all_its_files(staged):
    packages = "usr/local/lib/utterd/lib/python3.*/site-packages"
    (folder,) = staged.glob(f"{packages}/utterd/engine/voices/builtin/small")
    voice = package.read(folder)
    voice.verify()
    assert voice.manifest == package.read(package.BUILT_IN).manifest


def test_nothing_remembers_the_staging_folder(staged):
    command = ["grep", "--recursive", "--files-with-matches", "--binary", str(staged), str(staged)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_the_programs_start_from_where_they_lie(staged):
    """Through the staged environment's own interpreter."""
    python = staged / "usr/local/lib/utterd/bin/python"
    for module in ("utterd.sysconfig.main", "utterd.daemon.cli"):
        done = subprocess.run(
            [str(python), "-I", "-c", f"import sys, {module} as m; sys.exit(m.main(['--help']))"],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        assert done.returncode == 0, done.stderr
        assert "usage:" in done.stdout


def test_uninstall_leaves_nothing(copy):
    done = installed.run("uninstall", copy)
    assert done.returncode == 0, done.stderr
    assert not copy.exists()


def test_uninstall_leaves_what_is_not_ours(copy):
    for name in ("bin/other", "lib/systemd/system/other.service"):
        (copy / "usr/local" / name).write_text("")
    installed.run("uninstall", copy)
    left = sorted(str(p.relative_to(copy / "usr/local")) for p in copy.rglob("*") if p.is_file())
    assert left == ["bin/other", "lib/systemd/system/other.service"]


def test_an_old_python_is_refused_before_anything_is_made(tmp_path):
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = installed.run("install", tmp_path / "dest", PYTHON=str(old))
    assert done.returncode == 1
    assert "set PYTHON=" in done.stderr
    assert not (tmp_path / "dest").exists()
