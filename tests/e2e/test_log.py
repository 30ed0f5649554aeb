"""The log of a daemon and its children: one form for all of it."""

import json
import shutil

from tests.daemon_process import DaemonProcess
from utterd.engine.voices.package import BUILT_IN


def test_a_log_in_json_has_what_a_worker_says_in_json_too(tmp_path):
    voice = tmp_path / "data" / "voices" / "small"
    shutil.copytree(BUILT_IN, voice)
    (voice / "decode.onnx").write_bytes(b"no graph")
    daemon = DaemonProcess(
        tmp_path / "run",
        tmp_path / "data",
        *("--log-format", "json"),
        environment={"UTTERD_AUDIO_SINK": "null"},
        wait=False,
    )
    daemon.wait_until(lambda: "decode.onnx has 8 bytes" in daemon.log.read_text(), 30.0, "why")
    daemon.stop()
    records = [json.loads(line) for line in daemon.log.read_text().splitlines()]
    told = [record for record in records if record["logger"] == "engine"]
    assert told
    assert {(record["level"], record["child"]) for record in told} == {("error", "workers")}
    assert "decode.onnx has 8 bytes" in told[0]["message"]
