"""English words in a row: weak forms, and words that are said as the ones around them ask."""

from collections.abc import Sequence

from utterd.engine.frontend.english.words import VOWELS, EnglishWords

_VERB_AFTER = frozenset(
    [
        "to",
        "will",
        "can",
        "would",
        "could",
        "should",
        "must",
        "may",
        "might",
        "shall",
        "don't",
        "won't",
        "can't",
        "didn't",
        "doesn't",
        "not",
        "i",
        "you",
        "we",
        "they",
        "please",
        "let's",
        "just",
        "always",
        "never",
        "also",
        "and",
    ]
)
_NOUN_AFTER = frozenset(
    [
        "the",
        "a",
        "an",
        "my",
        "your",
        "his",
        "her",
        "our",
        "their",
        "this",
        "that",
        "its",
        "of",
        "in",
        "on",
        "for",
        "with",
        "every",
        "no",
        "any",
        "some",
        "new",
    ]
)
_PARTICIPLE_AFTER = frozenset(
    [
        "have",
        "has",
        "had",
        "been",
        "was",
        "were",
        "is",
        "are",
        "be",
        "being",
        "get",
        "got",
        "having",
        "i've",
        "you've",
        "we've",
        "they've",
    ]
)


def read(words: Sequence[str], lexicon: EnglishWords) -> list[str]:
    """Return the phonemes of each word of a run of English without a pause in it."""
    if len(words) == 1:
        return [lexicon.read(words[0])]
    shout = all(w.isupper() for w in words) and sum(len(w) > 3 for w in words) >= 2
    said: list[str] = [""] * len(words)
    following = ""
    for i in range(len(words) - 1, -1, -1):
        word = words[i].lower() if shout else words[i]
        said[i] = _weak(word, following, first=i == 0) or lexicon.read(word, _tag(words, i))
        following = said[i]
    return said


def _weak(word: str, following: str, *, first: bool) -> str | None:
    """Return the unstressed form of a function word before `following`, the phonemes behind it."""
    vowel = next((c in VOWELS for c in following if c not in "ˈˌ"), None)
    lower = word.lower()
    if lower == "the":
        return "ði" if vowel else "ðə"
    if word == "a" or (word == "A" and first and vowel is False):
        return "ɐ"
    if lower == "an" and not word.isupper():
        return "ɐn"
    if lower == "to" and vowel is not None:
        return "tʊ" if vowel else "tə"
    if lower == "in" and vowel is not None:
        return "ɪn"
    if word == "I":
        return "ˌI"
    return None


def _tag(words: Sequence[str], i: int) -> str:
    before = words[i - 1].lower() if i else ""
    if before in _PARTICIPLE_AFTER:
        return "VBN"
    if before in _NOUN_AFTER:
        return "NOUN"
    if before in _VERB_AFTER or not before:
        return "VERB"
    return "DEFAULT"
