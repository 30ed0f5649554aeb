"""Sets of CPUs as the kernel writes them: lists (`0-2,5`) and masks (`ff,00000001`)."""

from collections.abc import Iterable


def parse_list(text: str) -> frozenset[int]:
    """Read `0-2,5`; an empty text is the empty set.

    Raises:
        ValueError: The text is no CPU list.
    """
    cpus: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not (first.isdigit() and (last.isdigit() if dash else True)):
            raise ValueError(f"'{text}' is no list of CPUs; write it like 0-2,5")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def format_list(cpus: Iterable[int]) -> str:
    """Write a set the way the kernel does: ascending, runs joined."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def parse_mask(text: str) -> frozenset[int]:
    """Read a hexadecimal mask in groups of 32 bits.

    Raises:
        ValueError: The text is no mask.
    """
    words = [int(word, 16) for word in text.split(",")]
    mask = 0
    for word in words:
        mask = mask << 32 | word
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def format_mask(cpus: Iterable[int]) -> str:
    """Write a hexadecimal mask in groups of 32 bits, without leading groups of zero."""
    mask = sum(1 << cpu for cpu in set(cpus))
    words = [f"{mask & 0xFFFFFFFF:08x}"]
    while mask := mask >> 32:
        words.append(f"{mask & 0xFFFFFFFF:08x}")
    first, *rest = reversed(words)
    return ",".join([first.lstrip("0") or "0", *rest])
