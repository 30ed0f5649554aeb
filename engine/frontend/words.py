"""Words and their parts of speech, by rjieba."""

from dataclasses import dataclass

import rjieba


@dataclass(frozen=True, slots=True)
class Token:
    """A word in a text; `tag` is a part of speech of the ICTCLAS set (v, n, uj …)."""

    start: int
    end: int
    tag: str


def split(text: str) -> list[Token]:
    """Return the words of a text, in order and without gaps."""
    tokens = []
    at = 0
    for word, tag in rjieba.tag(text, hmm=False):
        tokens.append(Token(at, at + len(word), tag))
        at += len(word)
    return tokens
