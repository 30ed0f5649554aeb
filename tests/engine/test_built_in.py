"""The voice that comes with utterd is whole and small; tests/systemd sees that it is installed.

What it says is nothing to these tests: its weights may be others tomorrow.
"""

from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices import package
from utterd.engine.voices.load import load
from utterd.engine.voices.package import BUILT_IN, MANIFEST

MOST_BYTES = 12_000_000


def test_it_is_whole_and_small():
    voice = package.read(BUILT_IN)
    voice.verify()
    assert voice.manifest.name == BUILT_IN.name
    assert {path.name for path in BUILT_IN.iterdir()} == {MANIFEST, *voice.manifest.files}
    assert sum(file.bytes for file in voice.manifest.files.values()) <= MOST_BYTES


def test_it_loads_for_both_languages_with_both_controls():
    voice = load(BUILT_IN, "", OnnxCpu(), 1)
    try:
        assert {"zh", "en"} <= set(voice.languages)
        assert {"rate", "pitch"} <= set(voice.controls)
    finally:
        voice.close()
