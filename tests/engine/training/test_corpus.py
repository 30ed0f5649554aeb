"""A corpus is the same whatever killed its making."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from utterd.engine.training import dataset, files, plan, shards
from utterd.engine.training.teacher import Rendering, Teacher


def rendering(frames: int, seed: int = 0) -> Rendering:
    rng = np.random.default_rng(seed)
    return Rendering(
        rng.uniform(-0.5, 0.5, frames * 300).astype(np.float32),
        np.array([1, frames // 2 - 2, 1], np.int16),
        rng.uniform(5, 300, frames).astype(np.float32),
        rng.uniform(-9, 9, frames).astype(np.float32),
    )


def taught(item: int, frames: int) -> shards.Taught:
    return shards.taught(item, np.array([0, 43, 0], np.int16), rendering(frames, item))


def test_a_shard_gives_back_what_was_stored(tmp_path: Path) -> None:
    stored = [taught(3, 20), taught(4, 8), taught(5, 100)]
    found = shards.read(shards.write(tmp_path, 7, stored))
    assert list(shards.find(tmp_path)) == [7]
    for before, after in zip(stored, found, strict=True):
        assert after.item == before.item
        for name in ("tokens", "audio", "durations", "f0", "energy"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_a_damaged_shard_is_refused_by_name(tmp_path: Path) -> None:
    path = shards.write(tmp_path, 7, [taught(3, 20)])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"shard-00007.* is damaged"):
        shards.read(path)


def test_a_kill_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    files.write_whole(path, b"old")

    def killed(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_whole(path, b"new and long")
    assert path.read_bytes() == b"old"


def test_a_teacher_whose_lengths_disagree_is_refused(
    teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaking = Teacher(teacher, "zf_test")
    tokens = np.array([0, 43, 44, 0], np.int16)
    said = speaking.speak(tokens)
    assert said.audio.size == 4 * 2 * 600
    assert len(said.f0) == len(said.energy) == 16
    run = speaking._session.run

    def shorter(*arguments: object) -> list[np.ndarray]:
        *rest, audio = run(*arguments)
        return [*rest, audio[:-1]]

    class Session:
        def run(self, *arguments: object) -> list[np.ndarray]:
            return shorter(*arguments)

    monkeypatch.setattr(speaking, "_session", Session())
    with pytest.raises(ValueError, match="durations sum to 4800 samples"):
        speaking.speak(tokens)


def test_silence_is_trimmed_and_the_phase_still_counts_from_the_start() -> None:
    said = rendering(40)
    said.audio[: 10 * 300] = 0
    said.audio[30 * 300 :] = 0
    said.f0[:] = 160.0
    example = dataset.example(shards.taught(0, np.array([0, 43, 0], np.int16), said))
    # 10 ms, then up to whole frames: frame 9 at the head, frame 30 at the tail.
    assert example.length == 22
    assert len(example.audio) == 22 * 300
    assert not example.audio[:300].any()
    assert example.audio[300:600].any()
    whole_phase = (np.arange(40) + 1) * 2.0 % 1
    np.testing.assert_allclose(example.frames.source[:, 0], whole_phase[9:31], atol=1e-6)
    assert example.ends[-1] == example.length


def test_a_silent_item_is_refused_by_name() -> None:
    said = rendering(8)
    said.audio[:] = 0
    with pytest.raises(ValueError, match="item 12 of the corpus is silent"):
        dataset.example(shards.taught(12, np.array([0, 43, 0], np.int16), said))


def start(teacher: Path, out: Path, hours: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "utterd.engine.training", "corpus", "--teacher", str(teacher)]
    command += ["--speaker", "zf_test", "--workers", "1", "--hours", hours, "--out", str(out)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def test_kill_nine_loses_nothing_that_was_written(teacher: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    # The plan of all texts takes seconds to read; a short one shows the same.
    vocabulary = plan.teacher.vocabulary(teacher)
    items = [plan.Item(f"t{i}", "abcdef hi" * (i % 5 + 1), "talk", "none") for i in range(480)]
    out.mkdir()
    plan.save(out / "plan.json", plan.Plan(7, "zf_test", "0", vocabulary, items))
    first = start(teacher, out, "1")
    try:
        while not shards.find(out):
            assert first.poll() is None
            time.sleep(0.01)
        workers = children(first.pid)
        first.send_signal(signal.SIGKILL)
    finally:
        first.kill()
        first.wait()
    while any(Path(f"/proc/{pid}/cmdline").exists() and alive(pid) for pid in workers):
        time.sleep(0.01)
    survived = shards.find(out)
    again = start(teacher, out, "1")
    assert again.wait(timeout=100) == 0
    found = shards.find(out)
    assert list(found) == list(range(480 // shards.ITEMS))
    assert all(found[number] == path for number, path in survived.items())
    for number in (0, max(survived), len(found) - 1):
        for one in shards.read(found[number]):
            assert list(one.tokens) == plan.load(out / "plan.json").tokens(one.item)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_speeds_are_drawn_once_and_for_all() -> None:
    fast = plan.Plan(7, "zf_test", "0", {}, [], (1.2, 2.5))
    speeds = [fast.speed(index) for index in range(200)]
    assert speeds == [fast.speed(index) for index in range(200)]
    assert 1.2 <= min(speeds) < 1.3
    assert 2.4 < max(speeds) <= 2.5
    assert plan.Plan(7, "zf_test", "0", {}, []).speed(3) == 1


def test_a_plan_of_another_seed_is_not_mixed_in(teacher: Path, tmp_path: Path) -> None:
    vocabulary = plan.teacher.vocabulary(teacher)
    plan.save(tmp_path / "plan.json", plan.Plan(8, "zf_test", "0", vocabulary, []))
    refused = start(teacher, tmp_path, "1")
    assert refused.wait(timeout=60) == 1


def test_a_silent_teacher_says_how_it_would_speak(teacher: Path, tmp_path: Path) -> None:
    tokens = np.array([0, 43, 44, 45, 0], np.int16)
    said = Teacher(teacher, "zf_test").speak(tokens)
    silent = Teacher(teacher, "zf_test", silent=True).speak(tokens)
    assert silent.audio.size == 0
    for name in ("durations", "f0", "energy"):
        np.testing.assert_array_equal(getattr(silent, name), getattr(said, name))
    stored = [shards.taught(item, tokens, silent) for item in (4, 6)]
    shards.write(tmp_path, 0, stored)
    corpus = dataset.Corpus([tmp_path, kept_for_validation(tmp_path / "more", tokens, silent)])
    for example in corpus.train:
        np.testing.assert_array_equal(np.diff(example.ends, prepend=0), [4, 4, 4, 4, 4])
        assert example.length == len(example.f0) == len(example.frames.phoneme) == 20


def test_the_first_items_are_found_without_reading_the_rest(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run the corpus command first"):
        dataset.first(tmp_path, 2)
    tokens = np.array([0, 43, 44, 45, 0], np.int16)
    said = Teacher(teacher, "zf_test").speak(tokens)
    for number, items in enumerate([(5, 6), (7, 8)]):
        shards.write(tmp_path, number, [shards.taught(item, tokens, said) for item in items])
    (tmp_path / "shard-00002-0000000000000000.npz").write_bytes(b"not to be read")
    assert [e.item for e in dataset.first(tmp_path, 2)] == [6, 7], "5 is for validation"


def test_what_a_silent_teacher_does_not_sound_is_trimmed(teacher: Path) -> None:
    tokens = np.array([0, 43, 44, 45, 0], np.int16)
    said = Teacher(teacher, "zf_test", silent=True).speak(tokens)
    energy = np.full(20, -8, np.float32)
    energy[3:15] = 5
    example = dataset.example(shards.taught(0, tokens, replace(said, energy=energy)))
    # The pause of the last phoneme is none of its length.
    np.testing.assert_array_equal(np.diff(example.ends, prepend=0), [1, 4, 4, 3, 0])
    np.testing.assert_array_equal(dataset.prosody([example]).durations[0], [1, 4, 4, 3, 0])
    with pytest.raises(ValueError, match="item 9 of the corpus is silent"):
        dataset.example(shards.taught(9, tokens, replace(said, energy=energy - 20)))


def kept_for_validation(folder: Path, tokens: np.ndarray, said: Rendering) -> Path:
    folder.mkdir()
    shards.write(folder, 0, [shards.taught(5, tokens, said)])
    return folder


def test_the_acoustic_network_is_not_taught_by_a_silent_teacher(
    teacher: Path, tmp_path: Path
) -> None:
    tokens = np.array([0, 43, 44, 45, 0], np.int16)
    silent = Teacher(teacher, "zf_test", silent=True).speak(tokens)
    shards.write(tmp_path, 0, [shards.taught(item, tokens, silent) for item in (4, 5)])
    plan.save(tmp_path / "plan.json", plan.Plan(7, "zf_test", "0", {}, [], silent=True))
    arguments = ["fit", "acoustic", "--corpus", str(tmp_path), "--out", str(tmp_path / "fit")]
    finished = subprocess.run(
        [sys.executable, "-m", "utterd.engine.training", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert "for `fit prosody` only" in finished.stderr
    assert "Traceback" not in finished.stderr
