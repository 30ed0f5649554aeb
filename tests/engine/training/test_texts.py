import random
from collections import Counter
from pathlib import Path

import pytest

from utterd.engine.training import frames, selection, texts


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "text").mkdir()
    (folder / "zh").mkdir()
    (folder / "text/crosswoz.tsv").write_text("usr\t你好。附近有公园吗？\nsys\t（无）\n", "utf-8")
    (folder / "zh/cpp-dev.sent").write_text("他▁长▁得很高。\n座椅按摩已经关闭。\n", "utf-8")
    (folder / "text/ohf-intents-zh.txt").write_text('  - "打开客厅的灯"\n关灯\n', "utf-8")
    return folder


def test_held_out_sentences_are_as_many_as_they_must_be() -> None:
    kinds = Counter(sentence.kind for sentence in texts.held_out())
    assert kinds["zh"] >= 70
    assert kinds["en"] >= 10
    assert kinds["mixed"] >= 20
    assert len({sentence.text for sentence in texts.held_out()}) == sum(kinds.values())


def test_nothing_held_out_is_trained_on(data: Path) -> None:
    forbidden = {c for s in texts.held_out() for c in texts.clauses(s.text)}
    trained = texts.candidates(data, 7)
    assert len(trained) > 2000
    assert not [s for s in trained if forbidden & texts.clauses(s.text)]
    assert "座椅按摩已经关闭。" not in {s.text for s in trained}


def test_clauses_of_held_out_sentences_are_kept_away_too() -> None:
    assert "前方一公里处有测速" in texts.clauses("前方一公里处有测速，限速六十。")
    assert "限速六十" not in texts.clauses("前方一公里处有测速，限速六十。")


def test_data_is_cut_into_clean_sentences_with_their_licence(data: Path) -> None:
    found = {s.text: s for s in texts.candidates(data, 7)}
    assert found["附近有公园吗？"].source == "crosswoz"
    assert found["他长得很高。"].licence == "Apache-2.0"
    assert found["打开客厅的灯"].licence == "CC-BY-4.0"
    assert not [text for text in found if "（" in text or "▁" in text]


def test_the_seed_alone_chooses_the_fillings() -> None:
    first, again, other = (list(frames.fill(random.Random(s))) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert not [text for text in first if "{" in text]


def test_own_sentences_are_several_hundred() -> None:
    own = [s for s in texts.candidates(None, 7) if s.source != "frames"]
    assert len(own) >= 400
    assert {s.source for s in own} == set(texts.OWN)


def test_an_order_holds_every_item_once_and_keeps_the_shares() -> None:
    rng = random.Random(0)
    sources = [rng.choice(("talk", "frames")) for _ in range(400)]
    items = ["".join(rng.choices("abcdefgh", k=rng.randint(3, 12))) for _ in sources]
    order = selection.order(items, sources, 1)
    assert sorted(order) == list(range(400))
    assert order == selection.order(items, sources, 1)
    first = Counter(sources[i] for i in order[:90])
    assert first == {"talk": 30, "frames": 60}


def test_a_prefix_covers_more_than_a_random_one() -> None:
    rng = random.Random(0)
    letters, weights = "abcdefghijklmnop", [2.0**-i for i in range(16)]
    items = ["".join(rng.choices(letters, weights, k=8)) for _ in range(600)]
    order = selection.order(items, ["talk"] * 600, 1)
    chosen = {u for i in order[:40] for u in selection.units(items[i])}
    random_40 = {u for i in range(40) for u in selection.units(items[i])}
    assert len(chosen) > 1.5 * len(random_40)
