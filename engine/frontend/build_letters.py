"""Train the network that guesses unknown English words (development only; needs torch).

`python -m utterd.engine.frontend.build_letters [--epochs N]` aligns the letters of `english.tsv`
with their phonemes by EM, trains the network on the words but 3,000, and writes `letters.npz`.
Takes about ten minutes of one core; prints the share of the 3,000 that is read exactly right.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from utterd.engine.frontend.data_files import read_bytes

OUT = Path(__file__).parent / "data" / "letters.npz"
HELD_OUT = 3000
CHANNELS = 80
EDGE = 27
Example = tuple[str, list[str]]
Score = Callable[[str, tuple[str, ...]], float]

# Where EM begins: sounds that each letter may plausibly have.
_PLAUSIBLE = {
    "a": "æAɑəɔ",
    "b": "b",
    "c": "ksʧ",
    "d": "dT",
    "e": "ɛiəɪ",
    "f": "f",
    "g": "ɡʤ",
    "h": "h",
    "i": "ɪIiə",
    "j": "ʤ",
    "k": "k",
    "l": "l",
    "m": "m",
    "n": "nŋ",
    "o": "OɑɔəuʊW",
    "p": "p",
    "q": "k",
    "r": "ɹɜ",
    "s": "szʃ",
    "t": "tTʃð",
    "u": "ʌuʊə",
    "v": "v",
    "w": "w",
    "x": "ksz",
    "y": "jIiɪ",
    "z": "z",
}


def words() -> list[tuple[str, list[str]]]:
    """Return the plain words of the lexicon with their phonemes, a stress mark with its vowel."""
    found = {}
    for line in read_bytes("english.tsv").decode("utf-8").splitlines():
        word, _, said = line.partition("\t")
        said = said.split("|")[0].rpartition("=")[2]
        if word.isalpha() and not word.isupper() and 3 <= len(word) <= 18:
            found[word.lower()] = _split(said)
    return list(found.items())


def _split(said: str) -> list[str]:
    out: list[str] = []
    mark = ""
    for c in said:
        if c in "ˈˌ":
            mark = c
        else:
            out.append(mark + c)
            mark = ""
    return out


def _plain(chunk: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(phoneme.lstrip("ˈˌ") for phoneme in chunk)


def _first_score(letter: str, chunk: tuple[str, ...]) -> float:
    if not chunk:
        return -2.5
    known = sum(-1.0 if p in _PLAUSIBLE[letter] else -5.0 for p in _plain(chunk))
    return known - 2.0 * (len(chunk) - 1)


def align(word: str, said: list[str], score: Score) -> tuple[list[tuple[str, ...]], float] | None:
    """Give each letter up to three phonemes so that the total score is best."""
    n, m = len(word), len(said)
    best = [[-math.inf] * (m + 1) for _ in range(n + 1)]
    taken = [[0] * (m + 1) for _ in range(n + 1)]
    best[0][0] = 0.0
    for i, letter in enumerate(word):
        for j in range(m + 1):
            if best[i][j] == -math.inf:
                continue
            for k in range(min(3, m - j) + 1):
                total = best[i][j] + score(letter, tuple(said[j : j + k]))
                if total > best[i + 1][j + k]:
                    best[i + 1][j + k] = total
                    taken[i + 1][j + k] = k
    if best[n][m] == -math.inf:
        return None
    chunks: list[tuple[str, ...]] = []
    j = m
    for i in range(n, 0, -1):
        chunks.append(tuple(said[j - taken[i][j] : j]))
        j -= taken[i][j]
    return chunks[::-1], best[n][m]


def examples(data: list[tuple[str, list[str]]]) -> list[Example]:
    """Align all words; those that fit badly (abbreviations) are left out."""
    score: Score = _first_score
    for step in range(5):
        counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
        letters: Counter[str] = Counter()
        for word, said in data[:30_000]:
            aligned = align(word, said, score)
            for letter, chunk in zip(word, aligned[0] if aligned else [], strict=False):
                counts[letter, _plain(chunk)] += 1
                letters[letter] += 1
        table = {k: math.log((v + 0.01) / (letters[k[0]] + 5)) for k, v in counts.items()}

        def score(
            letter: str,
            chunk: tuple[str, ...],
            table: dict[tuple[str, tuple[str, ...]], float] = table,
        ) -> float:
            return table.get((letter, _plain(chunk)), -12.0)

        print(f"alignment, step {step + 1} of 5: {len(table)} pairs", flush=True)
    found = []
    for word, said in data:
        aligned = align(word, said, score)
        if aligned and aligned[1] / len(word) > -3.2:
            found.append((word, ["".join(chunk) for chunk in aligned[0]]))
    return found


class Network(nn.Module):
    """Letters (B, T) to scores (B, chunks, T); `english/guess.py` runs the same in numpy."""

    def __init__(self, chunks: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(28, 32, padding_idx=0)
        self.layers = nn.ModuleList(
            [nn.Conv1d(32 if n == 0 else CHANNELS, CHANNELS, 5, padding=2) for n in range(4)]
        )
        self.out = nn.Conv1d(CHANNELS, chunks, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, letters: Tensor) -> Tensor:
        """Score every chunk for every letter."""
        there = (letters > 0)[:, None].float()
        x = self.embedding(letters).transpose(1, 2)
        for n, layer in enumerate(self.layers):
            y = torch.relu(layer(x if n == 0 else self.drop(x)))
            x = (y if n == 0 else x + y) * there
        scores: Tensor = self.out(x)
        return scores


def batches(
    data: list[Example], index: dict[str, int], size: int, rng: random.Random
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield letters and chunk indices of words of about one length; -100 where there is none."""
    ordered = sorted(data, key=lambda d: (len(d[0]), rng.random()))
    groups = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    rng.shuffle(groups)
    for group in groups:
        width = max(len(word) for word, _ in group) + 2
        letters = torch.zeros(len(group), width, dtype=torch.long)
        wanted = torch.full((len(group), width), -100)
        for row, (word, chunks) in enumerate(group):
            ids = [EDGE, *(ord(c) - 96 for c in word), EDGE]
            letters[row, : len(ids)] = torch.tensor(ids)
            wanted[row, 1 : len(word) + 1] = torch.tensor([index[c] for c in chunks])
        yield letters, wanted


def exact(network: Network, data: list[Example], chunks: list[str]) -> float:
    """Return the share of words read exactly right, stress included."""
    network.eval()
    right = 0
    with torch.no_grad():
        for word, wanted in data:
            ids = torch.tensor([[EDGE, *(ord(c) - 96 for c in word), EDGE]])
            best = network(ids)[0, :, 1:-1].argmax(0)
            right += "".join(chunks[int(i)] for i in best) == "".join(wanted)
    network.train()
    return right / len(data)


def export(network: Network, chunks: list[str]) -> None:
    """Write the weights in half precision, laid out for rows of (T, channels)."""
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    arrays: dict[str, np.ndarray] = {
        "embedding": state["embedding.weight"].astype(np.float16),
        "layers": np.array(len(network.layers)),
        "chunks": np.array("|".join(chunks)),
        "out": state["out.weight"][:, :, 0].T.astype(np.float16),
        "out_bias": state["out.bias"].astype(np.float16),
    }
    for n in range(len(network.layers)):
        weight = state[f"layers.{n}.weight"]
        flat = weight.transpose(2, 1, 0).reshape(-1, weight.shape[0])
        arrays[f"weight{n}"] = flat.astype(np.float16)
        arrays[f"bias{n}"] = state[f"layers.{n}.bias"].astype(np.float16)
    np.savez_compressed(OUT, **arrays)  # type: ignore[arg-type]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    rng = random.Random(0)  # noqa: S311 - for shuffling
    torch.manual_seed(0)
    data = words()
    rng.shuffle(data)
    found = examples(data)
    counts = Counter(chunk for _, chunks in found for chunk in chunks)
    chunks = [chunk for chunk, count in counts.most_common() if count >= 20]
    index = {chunk: i for i, chunk in enumerate(chunks)}
    usable = [(word, parts) for word, parts in found if all(p in index for p in parts)]
    held_out, training = usable[:HELD_OUT], usable[HELD_OUT:]
    print(f"{len(training)} words to learn, {len(held_out)} held out, {len(chunks)} chunks")
    network = Network(len(chunks))
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-4)
    steps = args.epochs * -(-len(training) // 256)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for epoch in range(args.epochs):
        for letters, wanted in batches(training, index, 256, rng):
            loss = nn.functional.cross_entropy(network(letters), wanted, ignore_index=-100)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        share = exact(network, held_out, chunks)
        print(f"epoch {epoch + 1} of {args.epochs}: {100 * share:.1f} % exact", flush=True)
    export(network, chunks)


if __name__ == "__main__":
    main()
