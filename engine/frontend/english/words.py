"""One English word to phonemes: lexicon, endings by rule, parts, letters, a guess."""

import re
from functools import lru_cache

from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.english.guess import Guess
from utterd.engine.frontend.english.lexicon import EnglishLexicon

VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻɐ")
_TAP_BEFORE = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_CAMEL = re.compile(
    r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[a-z]+(?:'[a-z]+)?|[A-Z]+(?:'[a-z]+|s(?![a-z]))?"
)
_READABLE = re.compile(r"[aeiouy]", re.I)
_TAGS = {
    "VBN": ("VBN", "VBD", "ADJ", "VERB"),
    "VBD": ("VBD", "VERB"),
    "VERB": ("VERB",),
    "NOUN": ("NOUN",),
}


class EnglishWords:
    """Reads single words."""

    def __init__(self) -> None:
        self._lexicon = EnglishLexicon()
        self._guess = Guess()
        self._said: dict[str, str] = {}
        self._as_words: set[str] = set()
        for line in read_lines("english_extra.tsv"):
            word, _, phonemes = line.partition("\t")
            if phonemes == "word":
                self._as_words.add(word)
            else:
                self._said[word] = phonemes
        self.read = lru_cache(4096)(self._read)

    def known(self, word: str, tag: str = "DEFAULT") -> str | None:
        """Return the phonemes of a word of the lexicon, in any case, or None."""
        lower = word.lower()
        for form in dict.fromkeys((word, lower, lower.capitalize())):
            said = self._said.get(form)
            if said is not None:
                return said
            found = self._lexicon.find(form)
            if found is not None:
                for name in _TAGS.get(tag, ()):
                    if name in found:
                        return found[name]
                return found["DEFAULT"]
        return None

    def _read(self, word: str, tag: str = "DEFAULT") -> str:
        """Return the phonemes of any word of ASCII letters and apostrophes."""
        word = word.strip("'")
        if not word:
            return ""
        if len(word) == 1:
            return self.letter(word)
        exact = self._said.get(word)
        if exact:
            return exact
        capitals = word.rstrip("s'") if word.endswith(("s", "'s")) else word
        if capitals.isupper() and len(capitals) > 1:
            return self._capitals(capitals, word[len(capitals) :])
        found = self.known(word, tag) or self._inflected(word, tag)
        if found:
            return found
        if word[1:] != word[1:].lower():
            return self._camel(word)
        if not _READABLE.search(word) or (
            len(word) <= 3
            and word.lower() not in self._as_words
            and not re.search("[aeiouy]", word[1:])
        ):
            return self.spell(word)
        return self._compound(word) or self._guess(word.lower())

    def letter(self, letter: str) -> str:
        """Return the name of a letter."""
        found = self._lexicon.find(letter.upper()) or self._lexicon.find(letter.lower())
        return found["DEFAULT"] if found else ""

    def spell(self, word: str) -> str:
        """Read letter by letter, the last one stressed."""
        names = [self.letter(c) for c in word if c.isalpha()]
        if not names:
            return ""
        return "".join(n.replace("ˈ", "ˌ") for n in names[:-1]) + names[-1]

    def _capitals(self, word: str, ending: str) -> str:
        lower = word.lower()
        if lower in self._as_words or (len(word) >= 5 and self.known(lower)):
            said = self.known(lower) or self._guess(lower)
        else:
            said = self.spell(word)
        return _with_s(said) if "s" in ending else said

    def _camel(self, word: str) -> str:
        """Read CarPlay as Car Play and iOS as i OS."""
        parts = _CAMEL.findall(word)
        if len(parts) < 2:
            return self._compound(word) or self._guess(word.lower())
        said = [self.letter(p) if len(p) == 1 else self._read(p) for p in parts]
        # One word has one main stress: the first long part keeps it.
        keep = next((n for n, p in enumerate(parts) if len(p) > 1), 0)
        return "".join(s if n == keep else s.replace("ˈ", "ˌ") for n, s in enumerate(said))

    def _compound(self, word: str) -> str | None:
        """Read a word that two words of the lexicon make up: smarthome."""
        lower = word.lower()
        for at in range(len(lower) - 3, 2, -1):
            first, second = lower[:at], lower[at:]
            if (len(first) >= 4 and len(second) >= 4) or (len(first) >= 3 and len(second) >= 5):
                left, right = self.known(first), self.known(second)
                if left and right and first.isalpha():
                    return left + right.replace("ˈ", "ˌ")
        return None

    def _inflected(self, word: str, tag: str) -> str | None:
        lower = word.lower()
        for ending, joiner in (
            ("'s", _with_s),
            ("s'", _with_s),
            ("s", _with_s),
            ("ed", _with_ed),
            ("ing", _with_ing),
            ("'ll", _with_ll),
            ("'d", _with_d),
            ("'ve", _with_ve),
            ("'re", _with_re),
        ):
            if not lower.endswith(ending):
                continue
            for stem in (*_stems(lower, ending), word[: -len(ending)]):
                said = self.known(stem, tag)
                if said:
                    return joiner(said)
        return None


def _stems(word: str, ending: str) -> list[str]:
    base = word[: -len(ending)]
    stems = [base]
    if ending == "s" and base.endswith("ie"):
        stems.append(base[:-2] + "y")
    if ending == "s" and base.endswith("e"):
        stems.append(base[:-1])
    if ending in ("ed", "ing"):
        stems.append(base + "e")
        if ending == "ed" and base.endswith("i"):
            stems.append(base[:-1] + "y")
        if re.search(r"([bcdgklmnprstvxz])\1$", base):
            stems.append(base[:-1])
    return [s for s in stems if len(s) > 1]


def _with_s(said: str) -> str:
    if said[-1] in "ptkfθ":
        return said + "s"
    if said[-1] in "szʃʒʧʤ":
        return said + "ᵻz"
    return said + "z"


def _with_ed(said: str) -> str:
    if said[-1] in "pkfθʃsʧ":
        return said + "t"
    if said[-1] == "d":
        return said + "ᵻd"
    if said[-1] != "t":
        return said + "d"
    if len(said) > 1 and said[-2] in _TAP_BEFORE:
        return said[:-1] + "Tᵻd"
    return said + "ᵻd"


def _with_ing(said: str) -> str:
    if len(said) > 1 and said[-1] == "t" and said[-2] in _TAP_BEFORE:
        return said[:-1] + "Tɪŋ"
    return said + "ɪŋ"


def _with_ll(said: str) -> str:
    return said + ("ᵊl" if said[-1] not in VOWELS else "l")


def _with_d(said: str) -> str:
    return said + ("ᵻd" if said[-1] in "td" else "d")


def _with_ve(said: str) -> str:
    return said + ("əv" if said[-1] not in VOWELS else "v")


def _with_re(said: str) -> str:
    return said + "əɹ"
