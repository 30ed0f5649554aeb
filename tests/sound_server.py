"""A real sound server of our own: PipeWire with one null sink, which keeps real time.

It lives in a folder of its own with a private D-Bus, touches no sound of the user's, and leaves
nothing. `SoundServer.capture` records the monitor of its speaker, with times: what is heard.

Needs the packages: libportaudio2 pipewire pipewire-bin pipewire-alsa wireplumber dbus-daemon
pipewire-jack libjack-jackd2-dev gcc util-linux
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SINK = "spk"
RATE = 48_000
QUANTUM = 256
_PROGRAMS = (
    "dbus-daemon",
    "pipewire",
    "wireplumber",
    "wpctl",
    "pw-jack",
    "pw-cli",
    "pw-dump",
    "setpriv",
    "gcc",
)
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Even where the tests are killed."""
_CAPTURE_SOURCE = Path(__file__).parent / "audio" / "capture.c"
_NODE = """{{
  factory.name = support.null-audio-sink  node.name = {name}  node.description = "{name} speaker"
  media.class = Audio/Sink  audio.position = [ FL FR ]  audio.rate = {rate}
  object.linger = true  {sleep}
}}"""
_NEVER_SLEEPS = "node.pause-on-idle = false"
_SLEEPS = "node.pause-on-idle = true  session.suspend-timeout-seconds = 1"
_CONFIGURATION = """
context.properties = {{
  default.clock.rate = {rate}  default.clock.quantum = {quantum}
  default.clock.min-quantum = 64  default.clock.max-quantum = 1024
  default.clock.allowed-rates = [ 24000 48000 ]
}}
context.objects = [ {{ factory = adapter  args = {node} }} ]
"""


@dataclass(frozen=True)
class Capture:
    """What the speaker played, and when."""

    samples: NDArray[np.float32]
    """Shape (frames,): the left channel."""
    rate: int
    cycles: NDArray[np.uint64]
    """Shape (cycles, 3): first frame, start in us of CLOCK_MONOTONIC, frames."""
    lost: int
    """Cycles that the recorder or another client missed."""

    def time_ns(self, frame: int) -> int:
        """When a recorded frame reached the speaker, in ns of CLOCK_MONOTONIC."""
        at = int(np.searchsorted(self.cycles[:, 0], frame, side="right")) - 1
        first, start_us, _ = self.cycles[at].tolist()
        return start_us * 1000 + round((frame - first) * 1e9 / self.rate)

    def frame_at(self, ns: int) -> int:
        """The frame that reached the speaker at a time in ns of CLOCK_MONOTONIC."""
        at = int(np.searchsorted(self.cycles[:, 1], ns / 1000, side="right")) - 1
        first, start_us, frames = self.cycles[max(at, 0)].tolist()
        # While the speaker sleeps there are no cycles: the next frame is the one that counts.
        return int(first) + min(round((ns / 1000 - start_us) * self.rate / 1e6), frames)


class Recorder:
    """A running capture; `result` is there once its context has ended."""

    result: Capture


class SoundServer:
    """PipeWire, wireplumber and a D-Bus of their own; `environment` leads children to them.

    Args:
        sleeps: the speaker is suspended a second after the last sound, as sound cards are after
            some more.
    """

    def __init__(self, *, sleeps: bool = False) -> None:
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            raise RuntimeError(f"programs are missing: {', '.join(missing)}; see {__doc__}")
        self.folder = Path(tempfile.mkdtemp(prefix="utterd-sound."))
        self.folder.chmod(0o700)
        self.environment = {
            "XDG_RUNTIME_DIR": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder / 'bus'}",
        }
        configuration = self.folder / "config/pipewire/pipewire.conf.d/10-speaker.conf"
        configuration.parent.mkdir(parents=True)
        sleep = _SLEEPS if sleeps else _NEVER_SLEEPS
        self._node = _NODE.format(name=SINK, rate=RATE, sleep=sleep)
        configuration.write_text(_CONFIGURATION.format(rate=RATE, quantum=QUANTUM, node=self._node))
        self._capture_program = self.folder / "capture"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._spawn(
                "dbus-daemon",
                *("--session", "--nofork", "--nopidfile"),
                f"--address={self.environment['DBUS_SESSION_BUS_ADDRESS']}",
            )
            self._wait_for((self.folder / "bus").is_socket, "the D-Bus")
            self.start()
            subprocess.run(
                ["gcc", "-O2", "-o", self._capture_program, _CAPTURE_SOURCE, "-ljack"], check=True
            )
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start PipeWire and wireplumber; returns once the speaker is the default sink."""
        self._spawn("pipewire")
        self._wait_for((self.folder / "pipewire-0").is_socket, "PipeWire")
        self._spawn("wireplumber")
        self._wait_for(lambda: f'node.name = "{SINK}"' in self._default_sink(), "the speaker")

    def kill(self) -> None:
        """SIGKILL PipeWire (its clients see it vanish) and end wireplumber."""
        for name in ("pipewire", "wireplumber"):
            child = self._children.pop(name)
            child.kill()
            child.wait()
        for name in ("pipewire-0", "pipewire-0.lock"):
            (self.folder / name).unlink(missing_ok=True)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """PipeWire stands still (SIGSTOP) within this context."""
        pid = self._children["pipewire"].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def force_rate(self, rate: int) -> None:
        """Run the graph at a rate in Hz; 0 lets it be 48000 again."""
        self.run("pw-metadata", "-n", "settings", "0", "clock.force-rate", str(rate))

    def force_quantum(self, frames: int) -> None:
        """Let the graph work in steps of so many frames; 0 lets it be as its clients ask."""
        self.run("pw-metadata", "-n", "settings", "0", "clock.force-quantum", str(frames))

    def remove_sink(self) -> None:
        """Take the speaker away, as if it were unplugged."""
        self.run("pw-cli", "destroy", SINK)

    def add_sink(self) -> None:
        """Plug the speaker in again."""
        # The node lingers; the client that made it may go.
        self.run("pw-cli", "create-node", "adapter", self._node)
        self._wait_for(lambda: f'node.name = "{SINK}"' in self._default_sink(), "the speaker")

    def nodes(self) -> dict[str, dict[str, Any]]:
        """What the server knows of each node, by its name: `state`, `props` and more."""
        # What changes while it looks comes in further documents; what is gone has no info there.
        objects: dict[int, dict[str, Any]] = {}
        text, decoder = self.run("pw-dump").strip(), json.JSONDecoder()
        while text:
            changed, end = decoder.raw_decode(text)
            objects |= {one["id"]: one for one in changed}
            text = text[end:].strip()
        nodes = [o["info"] for o in objects.values() if o.get("type", "").endswith(":Node")]
        return {info["props"].get("node.name", ""): info for info in nodes if info}

    def wait_for_state(self, node: str, state: str) -> None:
        """Wait until a node is `running`, `idle` or `suspended`."""
        self._wait_for(lambda: self.nodes().get(node, {}).get("state") == state, f"{node} {state}")

    def wait_until_gone(self, node: str) -> None:
        """Wait until the server has no such node any more."""
        self._wait_for(lambda: node not in self.nodes(), f"the end of {node}")

    def run(self, *command: str) -> str:
        """Run a program as a client of this server and return what it prints."""
        return subprocess.run(
            command,
            env={**os.environ, **self.environment},
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
        ).stdout

    @contextmanager
    def capture(self, *, passive: bool = False) -> Iterator[Recorder]:
        """Record what the speaker plays within this context.

        Args:
            passive: do not keep the speaker awake; what it sleeps through is not recorded.
        """
        passively = {"PIPEWIRE_PROPS": "{ node.passive = true }"} if passive else {}
        samples, times = self.folder / "capture.f32", self.folder / "capture.times"
        process = subprocess.Popen(
            [*_ENDS_WITH_US, "pw-jack", self._capture_program, samples, times, "monitor_FL"],
            env={
                **os.environ,
                **self.environment,
                **passively,
                "PIPEWIRE_LATENCY": f"{QUANTUM}/{RATE}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        recorder = Recorder()
        assert process.stdout is not None
        with process.stdout:
            try:
                ready = re.match(r"READY (\d+)", process.stdout.readline())
                assert ready, f"the recorder ended with {process.wait()}"
                yield recorder
            finally:
                process.terminate()
                rest = process.stdout.read()
                process.wait()
        recorder.result = Capture(
            samples=np.fromfile(samples, np.float32),
            rate=int(ready[1]),
            cycles=np.fromfile(times, np.uint64).reshape(-1, 3),
            lost=int(rest.removeprefix("LOST ")),
        )

    def close(self) -> None:
        """End everything and remove the folder."""
        for child in reversed(list(self._children.values())):
            child.kill()
            child.wait()
        self._children.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _spawn(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(
                [*_ENDS_WITH_US, name, *arguments],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _default_sink(self) -> str:
        return subprocess.run(
            ["wpctl", "inspect", "@DEFAULT_AUDIO_SINK@"],
            env={**os.environ, **self.environment},
            check=False,
            text=True,
            capture_output=True,
        ).stdout

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text() for path in self.folder.glob("*.log"))
                raise RuntimeError(f"{what} does not come up:\n{logs}")
            time.sleep(0.01)
