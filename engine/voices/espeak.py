"""espeak-ng as a phonemiser, called in its shared library.

espeak-ng is under the GPL, so it is no part of the base install: it comes with the extra `espeak`
(the package `espeakng-loader`) or from the system (`libespeak-ng1`), whichever is there.
Its state is global, the voice included: one lock holds it from setting the voice to the result.
"""

import contextlib
import ctypes
import functools
import importlib.util
import re
import threading

from utterd.engine.voices.package import VoiceError

_RETRIEVAL = 1
_DONT_EXIT = 0x8000
_UTF8 = 1
_IPA = 2
_SYSTEM = "libespeak-ng.so.1"
_LOCK = threading.Lock()


def phonemes(text: str, voice: str) -> str:
    """IPA of a text without sentence marks; words stand apart by spaces.

    Args:
        text: one clause; NUL characters are taken for spaces.
        voice: espeak's name of a language, such as `en-us`.

    Raises:
        VoiceError: espeak-ng isn't installed, or doesn't know the voice.
    """
    with _LOCK:
        spoken = _library().phonemes(text, voice)
    # Where it changes the language it says so in brackets.
    return " ".join(re.sub(r"\([^)]*\)", "", spoken).split())


def version() -> str:
    """Of the library: another one may make other phonemes of the same text.

    Raises:
        VoiceError: espeak-ng isn't installed.
    """
    with _LOCK:
        return _library().version()


class _Library:
    """The loaded library and the voice it is set to."""

    def __init__(self, path: str, data: bytes | None) -> None:
        try:
            self._calls = ctypes.CDLL(path)
        except OSError as error:
            raise VoiceError(f"espeak-ng can't be loaded: {error}") from None
        self._calls.espeak_Initialize.argtypes = [
            ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int,
        ]  # fmt: skip
        self._calls.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
        self._calls.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._calls.espeak_TextToPhonemes.argtypes = [
            ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int,
        ]  # fmt: skip
        self._calls.espeak_Info.restype = ctypes.c_char_p
        self._calls.espeak_Info.argtypes = [ctypes.c_void_p]
        self._voice = ""
        if self._calls.espeak_Initialize(_RETRIEVAL, 0, data, _DONT_EXIT) < 0:
            raise VoiceError(f"{path} finds no data of its own: install espeak-ng again")

    def phonemes(self, text: str, voice: str) -> str:
        """What it makes of a text, all clauses in a row."""
        if voice != self._voice:  # setting it takes milliseconds
            self._voice = ""
            if self._calls.espeak_SetVoiceByName(voice.encode()) != 0:
                raise VoiceError(f"espeak-ng has no voice {voice!r}")
            self._voice = voice
        buffer = ctypes.create_string_buffer(text.replace("\0", " ").encode("utf-8", "replace"))
        rest = ctypes.c_void_p(ctypes.addressof(buffer))
        clauses = []
        while rest.value:
            spoken = self._calls.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            clauses.append((spoken or b"").decode("utf-8", "replace"))
        return " ".join(clauses)

    def version(self) -> str:
        """As it says itself."""
        return str(self._calls.espeak_Info(None).decode("utf-8", "replace"))


@functools.cache
def _library() -> _Library:
    return _Library(*_find())


def _find() -> tuple[str, bytes | None]:
    """Path of the library, and of its data where that isn't built in."""
    if importlib.util.find_spec("espeakng_loader") is not None:
        import espeakng_loader  # noqa: PLC0415 - an extra

        return espeakng_loader.get_library_path(), espeakng_loader.get_data_path().encode()
    with contextlib.suppress(OSError):
        ctypes.CDLL(_SYSTEM)
        return _SYSTEM, None
    raise VoiceError(
        "voices in Piper's format need espeak-ng: pip install 'utterd[espeak]', "
        "or apt install libespeak-ng1"
    )
