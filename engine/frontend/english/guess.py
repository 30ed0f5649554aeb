"""A guess at words no lexicon knows."""


class Guess:
    """Letters to phonemes by rule."""

    def __call__(self, word: str) -> str:
        """Return phonemes for a lower-case word."""
        return "".join(_LETTERS.get(c, "") for c in word)


_LETTERS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        [
            "æ",
            "b",
            "k",
            "d",
            "ɛ",
            "f",
            "ɡ",
            "h",
            "ɪ",
            "ʤ",
            "k",
            "l",
            "m",
            "n",
            "ɑ",
            "p",
            "k",
            "ɹ",
            "s",
            "t",
            "ʌ",
            "v",
            "w",
            "ks",
            "i",
            "z",
        ],
        strict=True,
    )
)
