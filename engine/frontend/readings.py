"""Chinese characters to their dictionary readings, in context."""

from utterd.engine.frontend.data_files import read_lines


class Readings:
    """Longest phrase first, then the usual reading of the character."""

    def __init__(self) -> None:
        self._single: dict[str, str] = {}
        for line in read_lines("characters.tsv"):
            character, _, found = line.partition("\t")
            self._single[character] = found.partition(" ")[0]
        self._phrases: dict[str, str] = {}
        self._longest: dict[str, int] = {}
        for line in read_lines("phrases.tsv"):
            word, _, found = line.partition("\t")
            self._phrases[word] = found
            first = word[0]
            if len(word) > self._longest.get(first, 0):
                self._longest[first] = len(word)

    def knows(self, character: str) -> bool:
        """Tell whether a character has a reading."""
        return character in self._single

    def read(self, text: str) -> list[str]:
        """Return a reading for each character of a run of Chinese ("" for an unknown one)."""
        out: list[str] = []
        at, n = 0, len(text)
        while at < n:
            for size in range(min(self._longest.get(text[at], 1), n - at), 1, -1):
                found = self._phrases.get(text[at : at + size])
                if found is not None:
                    out += found.split(" ")
                    at += size
                    break
            else:
                out.append(self._single.get(text[at], ""))
                at += 1
        return out
