"""The user's own lexicon: a text file that is read again whenever it changes.

One entry a line, word and reading separated by a tab or by `=`; `#` begins a comment:

    重庆        chong2 qing4     pinyin, one syllable for each character
    ES8         = E S 八         other text to say instead
    Kokoro      = /kˈOkəɹˌO/     phonemes of the voice

The longest word wins. A line that cannot be used and a word that is given twice with different
readings are problems: they are kept in `problems`, and the last usable line counts.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from utterd.engine.frontend.inline import plain_pinyin
from utterd.engine.frontend.mapped import Edit, Mapped
from utterd.engine.frontend.phonemes import is_syllable

_log = logging.getLogger("lexicon")
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")
_PINYIN = re.compile(r"[A-Za-züÜ:]+[1-5](?:\s+[A-Za-züÜ:]+[1-5])*")
_SYMBOLS = frozenset(
    ';:,.!?—…"()“” \u0303ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyz'
    "ɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲ↓→↗↘ᵻ"
)
MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """What to do with a word: give it `readings`, say `text` instead, or speak `phonemes`."""

    readings: tuple[str, ...] = ()
    text: str = ""
    phonemes: str = ""


class UserLexicon:
    """Entries of one file; `refresh` before use."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.problems: tuple[str, ...] = ()
        self.phonemes: dict[str, str] = {}
        self._entries: dict[str, Entry] = {}
        self._pattern: re.Pattern[str] | None = None
        self._stamp: tuple[int, int] | None = None
        self.refresh()

    def __len__(self) -> int:
        return len(self._entries)

    def refresh(self) -> bool:
        """Read the file again if it changed; tell whether it did."""
        if self.path is None:
            return False
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return False
            if status.st_size > MAX_BYTES:
                raise ValueError(f"larger than {MAX_BYTES} bytes")
            lines = self.path.read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            problem = (
                f"lexicon {self.path} cannot be read ({error}): the last good one stays in use"
            )
            if self.problems != (problem,):
                self.problems = (problem,)
                _log.warning(problem)
            return False
        self._stamp = stamp
        self._load(lines)
        return True

    def _load(self, lines: list[str]) -> None:
        entries: dict[str, Entry] = {}
        problems: list[str] = []
        for number, line in enumerate(lines, 1):
            stripped = line.split("#", 1)[0].strip()
            if not stripped:
                continue
            try:
                word, entry = parse(stripped)
            except ValueError as error:
                problems.append(f"{self.path}:{number}: {error}")
                continue
            if word in entries and entries[word] != entry:
                problems.append(f"{self.path}:{number}: {word} is given twice; this line counts")
            entries[word] = entry
        self._entries = entries
        self.problems = tuple(problems)
        self.phonemes = {w: e.phonemes for w, e in entries.items() if e.phonemes}
        words = sorted((w for w, e in entries.items() if not e.phonemes), key=len, reverse=True)
        self._pattern = re.compile("|".join(_bounded(w) for w in words)) if words else None
        for problem in problems:
            _log.warning(problem)

    def apply(self, mapped: Mapped) -> Mapped:
        """Give a text the user's readings and replacements."""
        if self._pattern is None:
            return mapped
        edits: list[Edit] = []
        for match in self._pattern.finditer(mapped.text):
            entry = self._entries[match.group()]
            if entry.text:
                edits.append((match.start(), match.end(), entry.text))
                continue
            piece = mapped.piece(match.start(), match.end())
            readings = {**dict(enumerate(entry.readings)), **piece.readings}
            edits.append(
                (match.start(), match.end(), Mapped(piece.text, piece.starts, piece.ends, readings))
            )
        return mapped.edit(edits)


def _bounded(word: str) -> str:
    """Match a word of letters only where no other letter touches it."""
    left = r"(?<![A-Za-z])" if word[0].isascii() and word[0].isalpha() else ""
    right = r"(?![A-Za-z])" if word[-1].isascii() and word[-1].isalpha() else ""
    return left + re.escape(word) + right


def parse(line: str) -> tuple[str, Entry]:
    """Read one line.

    Raises:
        ValueError: it has no reading, or one that cannot be spoken.
    """
    word, separator, reading = line.partition("\t")
    if not separator:
        word, separator, reading = line.partition("=")
    if not separator:
        word, separator, reading = line.partition(" ")
    word, reading = word.strip(), reading.strip().lstrip("=").strip()
    if not word or not reading:
        raise ValueError(f"expected a word and its reading, got {line!r}")
    if reading.startswith("/") and reading.endswith("/") and len(reading) > 2:
        unknown = sorted(set(reading[1:-1]) - _SYMBOLS)
        if unknown:
            raise ValueError(f"{word}: the voice has no phoneme {' '.join(unknown)}")
        if not word.isascii():
            raise ValueError(f"{word}: phonemes are for words of letters; give pinyin")
        return word, Entry(phonemes=reading[1:-1])
    if _PINYIN.fullmatch(reading) and _HAN.search(word):
        syllables = plain_pinyin(reading)
        if len(syllables) != len(word):
            raise ValueError(f"{word}: {len(syllables)} syllables for {len(word)} characters")
        for syllable in syllables:
            if not is_syllable(syllable):
                raise ValueError(f"{word}: {syllable} is no syllable of Mandarin with its tone")
        return word, Entry(readings=tuple(syllables))
    return word, Entry(text=reading)
