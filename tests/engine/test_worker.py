"""Real worker processes: what they say, what lies in the ring, and how they end."""

import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from tests.engine.running import Running
from utterd.audio.ring import Ring
from utterd.engine.messages import (
    Abandon,
    Abandoned,
    Alive,
    Broken,
    Failed,
    Finished,
    FirstAudio,
    Pcm,
    Segment,
    Shutdown,
)

HELLO = "Hello there. Turn left now."
LONG = "This is a sentence of some length that goes on and on. " * 12


@pytest.fixture
def worker(joes_worker: Running):
    joes_worker.heard()
    return joes_worker


def new_generation(worker: Running) -> int:
    return max([worker.ring.fence, *(getattr(m, "generation", 0) for m in worker.said)]) + 1


def spoken(worker: Running, text: str, **options):
    """Say a text to its end: its generation, its segments, its samples, its last message."""
    generation = new_generation(worker)
    worker.say(generation, text, **options)
    samples = worker.played(generation)
    return generation, worker.of(Segment, generation), samples, worker.end_of(generation)


def test_it_says_what_it_loaded(start, joe_dir):
    ready = start(joe_dir).ready()
    assert ready.voice == "joe-us"
    assert ready.sample_rate == 22_050
    assert ready.languages == ["en"]
    assert ready.controls == ["rate"]
    assert ready.runtime == "onnxruntime-cpu"
    assert ready.load_ms > 0
    assert ready.warm_ms > 0
    assert 0 < ready.real_time_factor < 20


def test_all_that_it_says_lies_in_the_ring(worker):
    generation, segments, samples, end = spoken(worker, HELLO)
    assert isinstance(end, Finished)
    assert end.samples == len(samples) == sum(s.samples for s in segments)
    assert generation in worker.ended
    assert np.abs(samples).max() > 0.1
    assert end.synthesis_ms > end.overhead_ms > 0


def test_segments_follow_each_other_and_only_the_last_is_last(worker):
    _, segments, _, _ = spoken(worker, HELLO)
    assert [s.index for s in segments] == list(range(len(segments)))
    assert [s.last for s in segments] == [False] * (len(segments) - 1) + [True]
    position = 0
    for segment in segments:
        assert segment.position == position
        position += segment.samples
        inside = [word.position for word in segment.words]
        assert all(segment.position <= at <= position for at in inside)
        assert inside == sorted(inside)
    words = [HELLO[w.start : w.end] for s in segments for w in s.words]
    assert words == ["Hello", "there", "Turn", "left", "now"]


def test_a_pause_stands_between_segments_and_shrinks_with_the_rate(worker):
    silences = {}
    for rate in (1.0, 2.0):
        _, segments, samples, _ = spoken(worker, HELLO, rate=rate)
        end = segments[1].position
        quiet = np.abs(samples[:end]) < 1e-6
        silences[rate] = len(quiet) - np.flatnonzero(~quiet)[-1]
    assert silences[1.0] > 0.1 * 22_050
    assert silences[2.0] == pytest.approx(silences[1.0] / 2, abs=500)


def test_stages_are_in_order(worker):
    generation, _, _, _ = spoken(worker, HELLO)
    (first,) = worker.of(FirstAudio, generation)
    stamps = [getattr(first, name) for name in first.__struct_fields__ if name.endswith("_ns")]
    assert stamps == sorted(stamps)
    assert len(stamps) == 6
    assert stamps[-1] <= time.monotonic_ns()


def test_a_segment_is_announced_before_its_last_samples(worker):
    generation = new_generation(worker)
    worker.say(generation, HELLO)
    worker.until(Segment, generation=generation)
    known = worker.heard().get(generation, np.zeros(0, np.float32))
    segment = worker.of(Segment, generation)[0]
    assert len(known) <= segment.samples
    worker.end_of(generation)
    assert worker.said.index(segment) < worker.said.index(worker.of(Finished, generation)[0])


def test_pieces_of_one_generation_are_one_utterance(worker):
    whole = spoken(worker, "Hello there. Turn left now.")[2]
    generation = new_generation(worker)
    worker.say(generation, "Hello there.", final=False)
    worker.until(Segment, generation=generation)
    worker.say(generation, " Turn left now.", offset=12)
    end = worker.end_of(generation)
    segments = worker.of(Segment, generation)
    assert [s.last for s in segments] == [False, True]
    assert segments[1].words[0].start == 13
    assert end.samples == len(worker.heard()[generation]) == len(whole)
    assert len(worker.of(FirstAudio, generation)) == 1


def test_an_empty_last_piece_ends_it(worker):
    generation = new_generation(worker)
    worker.say(generation, "Hello.", final=False)
    worker.until(Segment, generation=generation)
    worker.say(generation, "", offset=6)
    end = worker.end_of(generation)
    assert isinstance(end, Finished)
    assert worker.of(Segment, generation)[-1].last
    assert worker.of(Segment, generation)[-1].samples == 0
    assert len(worker.heard()[generation]) == end.samples
    assert generation in worker.ended


@pytest.mark.parametrize("text", ["😀", " ", "", "😀😀 \n", "\x00\x01", "你好"])
def test_what_has_no_sound_ends_at_once_and_is_reported(worker, text):
    generation, segments, samples, end = spoken(worker, text)
    assert isinstance(end, Finished)
    assert end.samples == 0
    assert len(samples) == 0
    assert generation in worker.ended
    assert segments[-1].last
    visible = [c for c in text if c.isprintable() and not c.isspace()]
    skipped = "".join(s.text for segment in segments for s in segment.skipped)
    assert all(character in skipped for character in visible)


def test_a_long_text_begins_before_it_is_read_to_its_end(worker):
    generation, segments, _, end = spoken(worker, LONG * 3, rate=3.0)
    assert isinstance(end, Finished)
    assert segments[-1].end >= len(LONG * 3) - 1
    starts = [word.start for segment in segments for word in segment.words]
    assert starts == sorted(starts)
    assert len(starts) == len((LONG * 3).split())
    (first,) = worker.of(FirstAudio, generation)
    assert first.phonemes_ns - first.started_synthesis_ns < 1e9


def test_volume_is_a_factor(worker):
    loud = spoken(worker, "Hello there.")[2]
    soft = spoken(worker, "Hello there.", volume=0.25)[2]
    np.testing.assert_allclose(soft, 0.25 * loud, atol=1e-6)


def test_samples_for_the_daemon_are_those_for_the_ring(worker):
    ringed = spoken(worker, HELLO)[2]
    generation = new_generation(worker)
    worker.say(generation, HELLO, to="daemon")
    end = worker.end_of(generation)
    parts = worker.of(Pcm, generation)
    assert [p.position for p in parts] == list(
        np.cumsum([0, *(len(p.data) // 4 for p in parts)])[:-1]
    )
    samples = np.concatenate([np.frombuffer(p.data, "<f4") for p in parts])
    np.testing.assert_allclose(samples, ringed, atol=1e-6)
    assert end.samples == len(samples)
    assert worker.heard() == {}


def test_lost_work_goes_on_where_it_was_written_to(worker):
    """Another worker takes a generation up: what lies in the ring isn't written again."""
    _, segments, whole, _ = spoken(worker, HELLO)
    second = segments[1]
    generation = new_generation(worker)
    written = second.position + 5000
    worker.say(generation, HELLO, begin=second.start, position=second.position, written=written)
    end = worker.end_of(generation)
    rest = worker.heard()[generation]
    assert end.samples == len(whole)
    assert worker.of(Segment, generation)[0].position == second.position
    np.testing.assert_allclose(rest, whole[written:], atol=1e-6)


def test_a_dropped_generation_is_abandoned_and_the_next_one_speaks(worker):
    generation = new_generation(worker)
    worker.say(generation, LONG)
    worker.until(FirstAudio, generation=generation)
    worker.ring.fence = generation + 1
    end = worker.end_of(generation)
    assert isinstance(end, Abandoned)
    assert end.samples > 0
    worker.heard()
    generation, _, samples, end = spoken(worker, HELLO)
    assert isinstance(end, Finished)
    assert len(samples) == end.samples


def test_a_revoked_generation_leaves_those_around_it_alone(worker):
    first = new_generation(worker)
    for generation in (first, first + 1, first + 2):
        worker.say(generation, HELLO)
    worker.ring.revoke(first + 1)
    ends = [worker.end_of(generation) for generation in (first, first + 1, first + 2)]
    assert [type(end) for end in ends] == [Finished, Abandoned, Finished]
    heard = worker.heard()
    assert len(heard[first]) == len(heard[first + 2])


def test_dropped_between_its_pieces(worker):
    generation = new_generation(worker)
    worker.say(generation, "Hello.", final=False)
    worker.until(Segment, generation=generation)
    worker.ring.revoke(generation)
    assert isinstance(worker.end_of(generation), Abandoned)
    worker.say(generation, "More of it.")
    _, _, _, end = spoken(worker, HELLO)
    assert isinstance(end, Finished)
    assert len(worker.of(Abandoned, generation)) == 1
    assert worker.of(Finished, generation) == []


def test_the_daemon_can_abandon_its_own(worker):
    generation = new_generation(worker)
    worker.say(generation, LONG * 4, to="daemon")
    worker.until(Pcm, generation=generation)
    worker.process.send(Abandon(generation))
    assert isinstance(worker.end_of(generation), Abandoned)


def test_an_unknown_speaker_fails_that_utterance_only(worker):
    _, _, _, end = spoken(worker, HELLO, speaker="nobody")
    assert isinstance(end, Failed)
    assert end.code == "bad_request"
    assert "nobody" in end.message
    assert isinstance(spoken(worker, HELLO)[3], Finished)


def test_markup_chooses_the_speaker_of_a_segment(start, kokoro_dir):
    worker = start(kokoro_dir)
    worker.ready()
    of_the_whole = "zf_xiaoxiao"
    by_markup = spoken(
        worker,
        '<speak>一<voice name="zm_yunxi">你好</voice></speak>',
        format="ssml",
        speaker=of_the_whole,
    )
    (other,) = [s for s in by_markup[1] if s.start > 8]
    alone = spoken(worker, "你好", speaker="zm_yunxi")[2]
    own = spoken(worker, "你好", speaker=of_the_whole)[2]
    heard = by_markup[2][other.position :]
    assert len(heard) == len(alone)
    np.testing.assert_allclose(heard, alone, atol=1e-3)
    assert len(own) != len(alone) or not np.allclose(own, alone, atol=1e-2)


def test_markup_with_an_unknown_speaker_says_nothing(worker):
    text = '<speak>One. <voice name="../../joe">Two.</voice></speak>'
    _, segments, samples, end = spoken(worker, text, format="ssml")
    assert isinstance(end, Failed)
    assert end.code == "bad_request"
    assert "'../../joe'" in end.message
    assert segments == []
    assert len(samples) == 0


def test_however_long_a_reason_is_it_fits_into_a_message(worker):
    name = "\U000f0000" * 19_900  # ten characters each where it is quoted
    text = f'<speak><voice name="{name}">One.</voice></speak>'
    _, _, _, end = spoken(worker, text, format="ssml")
    assert isinstance(end, Failed)
    assert end.code == "bad_request"
    assert end.message.startswith("voice joe-us has no speaker")
    assert isinstance(spoken(worker, HELLO)[3], Finished)


@pytest.mark.parametrize(
    "text",
    ["🙂" * 19_000, "🙂 🚗 " * 4_700, "<speak>" + "🙂a" * 9_000 + "</speak>"],
)
def test_however_much_is_skipped_its_report_fits_into_a_message(worker, text):
    generation = new_generation(worker)
    worker.say(generation, text, format="ssml" if text.startswith("<") else "plain")
    (segment, *_) = [worker.until(Segment, Failed, generation=generation)]
    assert isinstance(segment, Segment), segment
    worker.ring.revoke(generation)
    worker.end_of(generation)
    assert segment.skipped[0].text.startswith("🙂")
    assert segment.skipped[-1].end >= len(text.removesuffix("</speak>")) - 2


def test_it_is_not_busy_while_it_waits_for_the_speaker(start, joe_dir):
    worker = start(joe_dir, capacity_bytes=1 << 16)
    worker.ready()
    worker.say(1, LONG)
    worker.until(FirstAudio, generation=1)
    deadline = time.monotonic() + 60
    while worker.until(Alive).busy:
        assert time.monotonic() < deadline
    worker.ring.revoke(1)
    worker.end_of(1)


def test_it_says_that_it_is_alive_while_it_speaks(worker):
    generation = new_generation(worker)
    began = len(worker.said)
    worker.say(generation, LONG * 2)
    while len([m for m in worker.said[began:] if isinstance(m, Alive)]) < 2:
        worker.take(1.0)
        worker.heard()
    alive = [m for m in worker.said[began:] if isinstance(m, Alive)]
    assert alive[-1].rss_bytes > 50_000_000
    assert alive[-1].progress > 0
    worker.ring.fence = generation + 1
    worker.end_of(generation)


def test_a_full_ring_is_waited_for_and_a_fence_ends_the_wait(start, joe_dir):
    running = start(joe_dir, capacity_bytes=1 << 16, warm=False)
    running.ready()
    running.say(1, LONG)
    running.until(FirstAudio, generation=1)
    time.sleep(0.5)
    assert not running.of(Finished, 1)
    running.ring.fence = 2
    assert isinstance(running.end_of(1), Abandoned)


def test_two_workers_do_not_disturb_each_other(start, joe_dir):
    workers = [start(joe_dir, warm=False) for _ in range(2)]
    for running in workers:
        running.ready()
    for running in workers:
        for generation in (1, 2):
            running.say(generation, HELLO)
    heard = []
    for running in workers:
        assert isinstance(running.end_of(2), Finished)
        heard.append(running.heard())
    np.testing.assert_allclose(heard[0][1], heard[1][1], atol=1e-4)
    np.testing.assert_allclose(heard[0][1], heard[0][2], atol=1e-4)


def test_killed_in_the_middle_the_ring_stays_sound_and_another_takes_over(start, joe_dir):
    first = start(joe_dir, warm=False)
    first.ready()
    first.say(1, LONG)
    first.until(FirstAudio, generation=1)
    first.process.kill()
    first.until_gone()
    known = first.heard()[1]
    second = Running(joe_dir, ring=first.ring, warm=False)
    try:
        second.ready()
        second.say(1, LONG, position=0, written=len(known))
        rest = []
        while not second.of(Finished, 1):
            second.take(0.1)
            rest.append(first.heard().get(1, known[:0]))
        assert second.of(Finished, 1)[0].samples == len(known) + sum(map(len, rest))
        assert 1 in first.ended
    finally:
        second.close()
    assert first.close() == -signal.SIGKILL


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_when_the_daemon_is_gone(start, joe_dir, busy):
    running = start(joe_dir, warm=False)
    running.ready()
    if busy:
        running.say(1, LONG)
        running.until(FirstAudio, generation=1)
    assert running.close() == 0


def test_it_ends_while_it_loads(start, kokoro_dir):
    running = start(kokoro_dir)
    time.sleep(0.3)
    assert running.close() == 0


def test_shutdown_ends_it(start, joe_dir):
    running = start(joe_dir, warm=False)
    running.ready()
    running.say(1, LONG)
    running.process.send(Shutdown())
    running.until_gone()
    assert running.close() == 0


def test_sigterm_ends_it_and_ctrl_c_does_not(start, joe_dir):
    running = start(joe_dir, warm=False)
    running.ready()
    os.kill(running.process.pid, signal.SIGINT)
    running.say(1, HELLO)
    assert isinstance(running.end_of(1), Finished)
    os.kill(running.process.pid, signal.SIGTERM)
    running.until_gone()
    assert running.close() == -signal.SIGTERM


def broken(start, folder: Path, **options) -> str:
    running = start(folder, **options)
    message = running.until(Broken)
    running.until_gone()
    assert running.close() == 1
    assert "\n" not in message.message
    return message.message


def test_no_voice_there(start, tmp_path):
    assert "no voice here" in broken(start, tmp_path / "nowhere")


def test_a_damaged_voice(start, joe_dir, tmp_path):
    folder = tmp_path / "joe"
    folder.mkdir()
    for name in ("voice.toml", "config.json"):
        (folder / name).write_bytes((joe_dir / name).read_bytes())
    graph = (joe_dir / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(graph[:-100])
    assert "bytes instead of" in broken(start, folder)
    (folder / "model.onnx").write_bytes(graph[:-100] + bytes(100))
    assert "SHA-256" in broken(start, folder)


def test_a_lexicon_that_is_not_there_does_not_keep_it_from_speaking(start, joe_dir, tmp_path):
    running = start(joe_dir, warm=False, lexicon=str(tmp_path / "none.txt"))
    running.ready()
    running.say(1, HELLO)
    assert isinstance(running.end_of(1), Finished)


def test_what_it_does_not_understand_ends_it(start, joe_dir):
    running = start(joe_dir, configure=False)
    with socket.fromfd(running.process.fileno(), socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.send(b"\x81\xa4type\xa7Nothing")
    running.until_gone()
    assert running.close() == 2


def test_started_without_its_descriptors_it_says_so(capfd):
    from utterd.engine import worker  # noqa: PLC0415

    with pytest.raises(SystemExit) as end:
        worker.main(["--control-fd", "997", "--ring-fd", "998", "--wake-fd", "999"])
    assert end.value.code == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_kokoro_speaks_both_languages_in_one_utterance(start, kokoro_dir):
    running = start(kokoro_dir, warm=False)
    running.ready()
    text = "你好，turn left。"
    running.say(1, text)
    end = running.end_of(1)
    assert isinstance(end, Finished), end
    samples = running.heard()[1]
    assert len(samples) == end.samples
    segments = running.of(Segment, 1)
    words = [text[w.start : w.end] for s in segments for w in s.words]
    assert words == ["你好", "turn", "left"]
    assert end.overhead_ms < 200


def test_kokoro_is_left_in_the_middle_of_its_network(start, kokoro_dir):
    running = start(kokoro_dir, warm=False)
    running.ready()
    running.say(1, "现在我要说一句非常非常长的话请你不要打断我因为我还没有说完")
    time.sleep(0.5)
    running.ring.fence = 2
    began = time.monotonic()
    end = running.end_of(1)
    free = time.monotonic() - began
    assert isinstance(end, Abandoned)
    assert end.samples == 0
    running.say(2, "好。")
    assert isinstance(running.end_of(2), Finished)
    whole = running.of(Finished, 2)[0].synthesis_ms / 1000
    assert free < max(1.0, whole)


def test_the_ring_outlives_its_workers(start, joe_dir):
    ring = Ring.create()
    try:
        for generation in (1, 2):
            running = Running(joe_dir, ring=ring, warm=False)
            try:
                running.ready()
                running.say(generation, "Hello.")
                assert isinstance(running.end_of(generation), Finished)
                assert len(running.heard()[generation]) > 0
            finally:
                running.close()
    finally:
        ring.close()


def test_memory_does_not_grow_with_what_was_said(worker):
    """The arena is given back after each run, whatever its length."""
    texts = ("Yes.", "The nearest station is five miles away, and the road is clear.", HELLO)

    def rss_mb() -> float:
        pages = Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    for turn in range(20):  # until the allocators have what they need
        spoken(worker, texts[turn % 3], rate=3.0)
    before = rss_mb()
    for turn in range(40):
        spoken(worker, texts[turn % 3], rate=3.0)
    assert rss_mb() - before < 15.0
