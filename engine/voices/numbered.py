"""From the front end's phonemes to the numbers that a network reads."""

from collections.abc import Mapping, Sequence

from utterd.engine.frontend.contract import Phoneme, Skipped


def numbered(
    phonemes: Sequence[Phoneme], symbols: Mapping[str, int], voice: str
) -> tuple[list[int], list[int], tuple[Skipped, ...]]:
    """Number the phonemes that a voice knows.

    Args:
        phonemes: of a segment.
        symbols: the voice's numbers.
        voice: its name, for the report.

    Returns:
        The tokens; for every phoneme its place among them (that of the next where it has none),
        and for the end behind the last; what was left out.
    """
    tokens: list[int] = []
    place: list[int] = []
    skipped: list[Skipped] = []
    for phoneme in phonemes:
        place.append(len(tokens))
        if (number := symbols.get(phoneme.symbol)) is not None:
            tokens.append(number)
        else:
            why = f"no sound in {voice}"
            skipped.append(Skipped(phoneme.start, phoneme.end, phoneme.symbol, why))
    place.append(len(tokens))
    return tokens, place, tuple(skipped)
