import random

import pytest

from utterd.engine.frontend.data_files import read_bytes, read_lines
from utterd.engine.frontend.english.guess import Guess, stress
from utterd.engine.frontend.english.lexicon import EnglishLexicon
from utterd.engine.frontend.english.words import EnglishWords

from .test_reader import KOKORO


@pytest.fixture(scope="module")
def words() -> EnglishWords:
    return EnglishWords()


def _phonemes(reader, text):
    return "".join(p.symbol for g in reader.analyse(text).segments for p in g.phonemes)


def test_every_line_of_the_lexicon_is_found():
    lexicon = EnglishLexicon()
    lines = read_bytes("english.tsv").decode().splitlines()
    rng = random.Random(1)
    for line in [lines[0], lines[-1], *rng.sample(lines, 300)]:
        word, _, said = line.partition("\t")
        found = lexicon.find(word)
        assert found is not None
        assert set(found.values()) <= set(said.replace("|", "=").split("="))
    assert lexicon.find("no such word") is None
    assert lexicon.find("") is None


def test_the_lexicon_is_small_and_sorted():
    lexicon = EnglishLexicon(b"aa\t1\nab\t2\nb\tDEFAULT=3|VERB=4\n")
    assert [lexicon.find(w) for w in ("aa", "ab", "b", "a", "c")] == [
        {"DEFAULT": "1"}, {"DEFAULT": "2"}, {"DEFAULT": "3", "VERB": "4"}, None, None
    ]  # fmt: skip


def test_own_entries_use_the_alphabet():
    for line in read_lines("english_extra.tsv"):
        phonemes = line.split("\t")[1]
        assert phonemes == "word" or set(phonemes) <= KOKORO, line


def test_own_entries_say_what_the_lexicon_does_not():
    lexicon = EnglishLexicon()
    for line in read_lines("english_extra.tsv"):
        word, phonemes = line.split("\t")
        assert (lexicon.find(word) or {}).get("DEFAULT") != phonemes, line


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hello", "həlˈO"),
        ("Hello", "həlˈO"),
        ("KTV", "kˌAtˌivˈi"),
        ("NASA", "nˈæsə"),
        ("CDs", "sˌidˈiz"),
        ("NASA's", "nˈæsəz"),
        ("iPhone", "ˈIfˌOn"),
        ("CarPlay", "kˈɑɹplˌA"),
        ("iOS", "ˌIOˈɛs"),
        ("boxes", "bˈɑksᵻz"),
        ("X", "ˈɛks"),
    ],
)
def test_words(words, word, said):
    assert words.read(word) == said


def test_endings_are_added_by_rule(words):
    assert words.read("Spotify's") == words.read("Spotify") + "z"
    assert words.read("blogged").startswith(words.read("blog"))


def test_weak_forms_and_heteronyms(reader):
    assert _phonemes(reader, "the end of the day").startswith("ði ˈɛnd")
    assert " ðə dˈA" in _phonemes(reader, "the end of the day")
    assert "tə ɡˌO" in _phonemes(reader, "I want to go home")
    assert _phonemes(reader, "I have read it").count("ɹˈɛd") == 1
    assert _phonemes(reader, "I will read it").count("ɹˈid") == 1


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It costs $3.50 for 2 people.", "It costs three dollars and fifty cents for two people."),
        ("Turn left in 200 m at 8:05 am.", "Turn left in two hundred meters at eight oh five A M."),
        ("It grew 3.5% in 2023.", "It grew three point five percent in twenty twenty three."),
        ("The 1st and 22nd of May", "The first and twenty second of May"),
        ("On March 5, 2024 we met", "On March fifth, twenty twenty four we met"),
        ("The U.S. and Dr. Smith agree", "The US and doctor Smith agree"),
        ("Write to me at a.b@c.com please", "Write to me at a dot b at c dot com please"),
        ("It is -5°C here now", "It is minus five degrees Celsius here now"),
        ("Call 555-1234 right now", "Call five five five, one two three four right now"),
        ("About 1/2 of the 1990s", "About one half of the nineteen nineties"),
    ],
)
def test_numbers_in_english_sentences(reader, written, said):
    assert reader.analyse(written).normalized == said


def test_guesses_are_sounds_with_one_main_stress():
    guess = Guess()
    for word in (
        "kubernetes",
        "blorptastic",
        "zzz",
        "a",
        "xyz",
        "antidisestablishmentarianism" * 3,
    ):
        said = guess(word)
        assert set(said) <= KOKORO
        assert said.count("ˈ") <= 1
    assert guess("") == ""
    assert guess("kubernetes") == guess("kubernetes")


def test_guesses_words_of_the_lexicon_mostly_right():
    """Half of the words without a family are read exactly so, stress included."""
    lines = [line.split("\t") for line in read_bytes("english.tsv").decode().splitlines()]
    plain = [
        (w, p) for w, p in lines if w.isalpha() and w.islower() and 4 < len(w) < 12 and "=" not in p
    ]
    sample = random.Random(3).sample(plain, 400)
    guess = Guess()
    right = sum(guess(word) == stress(phonemes) for word, phonemes in sample)
    assert right / len(sample) > 0.5


@pytest.mark.parametrize(
    ("given", "stressed"),
    [("kæt", "kˈæt"), ("bəˌnɑnə", "bəˈnɑnə"), ("ˈæˈb", "ˈæˌb"), ("ksk", "ksk")],
)
def test_stress_is_put_right(given, stressed):
    assert stress(given) == stressed
