"""One English word to phonemes: lexicon, endings by rule, letters."""

import re

from utterd.engine.frontend.english.lexicon import EnglishLexicon

_VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")
_TAP_BEFORE = frozenset("AIOWYiuæɑəɛɪɹʊʌ")


class EnglishWords:
    """Reads single words."""

    def __init__(self) -> None:
        self._lexicon = EnglishLexicon()

    def known(self, word: str, tag: str = "DEFAULT") -> str | None:
        """Return the phonemes of a word of the lexicon, in any case, or None."""
        for form in (word, word.lower(), word.capitalize()):
            found = self._lexicon.find(form)
            if found is not None:
                return found.get(tag, found["DEFAULT"])
        return None

    def read(self, word: str, tag: str = "DEFAULT") -> str:
        """Return the phonemes of any word of ASCII letters and apostrophes."""
        if len(word) == 1:
            return self.letter(word)
        if word.isupper() and (self.known(word.lower()) is None or len(word) <= 3):
            return self.spell(word)
        found = self.known(word, tag) or self._inflected(word, tag)
        return found or self.spell(word)

    def letter(self, letter: str) -> str:
        """Return the name of a letter."""
        found = self._lexicon.find(letter.upper())
        return found["DEFAULT"] if found else ""

    def spell(self, word: str) -> str:
        """Read letter by letter, the last one stressed."""
        names = [self.letter(c) for c in word if c.isalpha()]
        if not names:
            return ""
        return "".join(n.replace("ˈ", "ˌ") for n in names[:-1]) + names[-1]

    def _inflected(self, word: str, tag: str) -> str | None:
        lower = word.lower()
        for ending, joiner in (
            ("'s", _with_s),
            ("s", _with_s),
            ("ed", _with_ed),
            ("ing", _with_ing),
        ):
            if not lower.endswith(ending):
                continue
            for stem in _stems(lower, ending):
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
