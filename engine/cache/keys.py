"""What a segment is known by in the cache.

A key is a keyed hash: without the secret nobody can tell from it whether a guessed phrase was said.
It covers all that the samples depend on: what the voice reads of the segment, how it is to be said,
and the identity of voice, runtime and code, so that none of them may change under an entry.
Places in the text are no part of it: they are the segment's own, wherever it stands.
"""

import functools
import hashlib
from pathlib import Path

import msgspec
import numpy as np

from utterd.engine.frontend.contract import Segment
from utterd.engine.voices import espeak
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.package import VoicePackage

KEY_BYTES = 16
SECRET_BYTES = 32
"""Of what keys are hashed under."""

_ROOM = Path(__file__).parent.parent
_CODE = ("voices", "runtimes")
"""Folders of this room that samples depend on. The front end is not among them: all that it may
change is in the segment."""


def identity(package: VoicePackage, runtime: str, threads: int) -> bytes:
    """What all entries of a loaded voice have in common.

    Args:
        package: that was loaded; the manifest has the checksums of all its files.
        runtime: its name.
        threads: of one run; another number adds up in another order.
    """
    import onnxruntime  # noqa: PLC0415 - 15 MB that the daemon, which empties the cache, never needs

    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    digest.update(msgspec.msgpack.encode(package.manifest))
    releases = [onnxruntime.__version__, np.__version__]
    if package.manifest.kind == "vits":
        releases.append(espeak.version())
    digest.update(msgspec.msgpack.encode((runtime, threads, *releases)))
    digest.update(code())
    return digest.digest()


@functools.cache
def code() -> bytes:
    """A hash of the code that samples depend on.

    Read once a process, and in the nursery for all workers: they run what it has imported, though
    an update has put other code on the disk since.
    """
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for folder in _CODE:
        for path in sorted((_ROOM / folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


class Keys:
    """Makes keys.

    Args:
        secret: `SECRET_BYTES` that nobody else knows.
        identity: see `identity`.
    """

    def __init__(self, secret: bytes, identity: bytes) -> None:
        self._begun = hashlib.blake2b(identity, digest_size=KEY_BYTES, key=secret)

    def of(self, segment: Segment, controls: Controls) -> bytes:
        """The key of a segment said in a certain way."""
        spoken = (
            segment.text,
            segment.language,
            "".join(phoneme.symbol for phoneme in segment.phonemes),
            [word.first for word in segment.words],
            [mark.first for mark in segment.marks],
            [syllable.spoken for syllable in segment.syllables],
            controls.rate,
            controls.pitch,
            controls.speaker,
        )
        digest = self._begun.copy()
        digest.update(msgspec.msgpack.encode(spoken))
        return digest.digest()
