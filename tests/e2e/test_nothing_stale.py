"""Whatever is asked, taken back and lost, in any order: the recording holds what the events say.

Real daemon, worker and player; the voice's every half phoneme tells whose it is (tests/coded.py).
"""

import pytest

from tests import coded
from tests.daemon_process import DaemonProcess
from tests.scene import Asked, Scene

SCENES = 14
TROUBLED_SCENES = 6
COMMANDS = 25


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coded")
    coded.build(folder / "data" / "voices" / "coded")
    environment = {
        "UTTERD_AUDIO_SINK": "wav",
        "UTTERD_AUDIO_WAV": str(folder / "heard.wav"),
        "UTTERD_AUDIO_SPEED": "4",
        "UTTERD_LOG_LEVEL": "warning",
    }
    process = DaemonProcess(
        folder / "run", folder / "data", "--voice", "coded", environment=environment
    )
    yield process, folder / "heard.wav"
    process.stop()


@pytest.mark.parametrize("seed", range(SCENES))
def test_what_is_heard_is_what_the_events_say(stage, seed):
    judge(perform(stage, seed, ()))


@pytest.mark.parametrize("seed", range(SCENES, SCENES + TROUBLED_SCENES))
def test_a_lost_device_leaves_nothing_stale_behind(stage, seed):
    judge(perform(stage, seed, ("full_disk", "kill_player")))


def perform(stage, seed: int, troubles: tuple[str, ...]) -> Scene:
    scene = Scene(*stage, first=1 + seed * (COMMANDS + 1), seed=seed)
    try:
        scene.play(COMMANDS, troubles)
    finally:
        scene.close()
    return scene


def judge(scene: Scene) -> None:
    heard = scene.heard()
    pieces = heard.pop(0, [])
    assert all(piece.end - piece.begin <= 2 * coded.FRAME for piece in pieces), pieces
    assert set(heard) <= {asked.number for asked in scene.asked}
    for asked in scene.asked:
        judge_one(scene, asked, heard.get(asked.number, []), len(pieces))
    judge_order(scene, heard)
    judge_pauses(scene, heard)


def judge_one(scene: Scene, asked: Asked, stretches: list[coded.Stretch], pieces: int) -> None:
    end, recorded = asked.end
    late = [s for s in stretches if s.end > recorded - scene.begin]
    assert not late, f"{asked.id} sounds after {end}: {late}"
    reached, hidden = judge_sequence(scene, asked, stretches)
    told = f"{asked.id} {asked.text!r} {end}: {stretches}, {[e for e, _ in asked.events]}"
    match end["event"]:
        case "ended":
            assert reached <= len(coded.phonemes(asked.text)) <= reached + hidden, told
        case "dropped":
            assert not stretches, told
        case "cancelled" if not scene.troubled:
            words = len(asked.text[: end["heard_characters"]].split())
            firsts = [first for first, _ in coded.ends_of_words(asked.text)]
            least = sum(first < reached for first in firsts)
            # What was cut within its first frames is a piece, which does not tell whose it is.
            most = sum(first < reached + hidden + 2 * pieces for first in firsts)
            assert least <= words <= most, told
    is_plain = not (asked.of("paused", "underrun") or asked.in_pieces or scene.troubled)
    if stretches and is_plain:
        judge_length(end, stretches, pieces, told)


def judge_sequence(scene: Scene, asked: Asked, stretches: list[coded.Stretch]) -> tuple[int, int]:
    """Follow the phonemes: none is left out, and what is repeated was told by `resumed`.

    Returns:
        Phonemes heard from the first on, and how many more may be at edges, in part.
    """
    expected = coded.phonemes(asked.text)
    words = coded.ends_of_words(asked.text)
    again = {0} | {
        min((first for first, at in words if at > event["start"]), default=len(expected))
        for event in asked.of("resumed")
    }
    reached = at = 0
    hidden = 0 if stretches else 2  # what fades before its level is reached can't be read
    cut = False
    for stretch in stretches:
        heard = stretch.phonemes
        # At an edge within a phoneme it can't be read; a killed player loses a period more.
        slack = (3 if scene.troubled else 2) if cut or not stretch.whole else 0
        onward = list(range(at, at + slack + 1))
        back = sorted((n for n in again if n <= reached + slack), reverse=True) if cut else []
        fits = [n for n in (*onward, *back) if expected[n : n + len(heard)] == heard]
        assert fits, f"{asked.id} {asked.text!r}: after {at} of {expected} {stretch}: {stretches}"
        at = fits[0] + len(heard)
        reached = max(reached, at)
        cut = not stretch.whole or bool(asked.of("paused"))
        hidden = 0 if stretch.whole else slack
    return reached, hidden


def judge_length(end: dict, stretches: list[coded.Stretch], pieces: int, told: str) -> None:
    """`played_ms` is what the recording holds, from the silence of 10 ms at its head.

    One that was displaced before its first level was reached has a piece more, or only that silence
    once more, and starts anew.
    """
    if not all(s.whole for s in stretches[:-1]):
        return
    span = stretches[-1].end - stretches[0].begin + coded.FRAME
    played = end["played_ms"] * coded.SAMPLE_RATE / 1000
    silence, piece = coded.FRAME, 2 * coded.FRAME * pieces
    if end["event"] == "ended":
        assert -5 <= played - span - silence <= 5 + silence + piece, told
    elif end["event"] == "cancelled" and not stretches[-1].whole:
        assert -coded.RAMP - piece <= played - span <= coded.RAMP + silence + piece, told
    elif end["event"] == "cancelled":
        assert played >= span - coded.RAMP, told


def judge_order(scene: Scene, heard: dict[int, list[coded.Stretch]]) -> None:
    """What one client said with one priority is heard in that order."""
    begun: dict[tuple[str, str], int] = {}
    for asked in scene.asked:
        if asked.number in heard and not asked.in_pieces:
            line = asked.client, asked.priority
            begin = heard[asked.number][0].begin
            assert begin >= begun.get(line, 0), f"{asked.id} overtook one of {line}"
            begun[line] = begin


def judge_pauses(scene: Scene, heard: dict[int, list[coded.Stretch]]) -> None:
    """From the reply to `pause` to `resume`, only what is important sounds."""
    for begin, end in scene.held:
        for asked in scene.asked:
            for s in heard.get(asked.number, []) if asked.priority != "important" else []:
                assert s.end <= begin or s.begin >= end, f"{asked.id} sounds while paused: {s}"
