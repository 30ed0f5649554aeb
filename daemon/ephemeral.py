"""A daemon for the length of one call: `utterd say --start`."""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config

START_TIMEOUT_S = 180.0
PR_SET_PDEATHSIG = 1
"""<linux/prctl.h>: signal a process when its parent dies."""


@contextmanager
def a_daemon(options: argparse.Namespace, config: Config) -> Iterator[None]:
    """Within this context there is a daemon: one for it alone, where `--start` asks for one.

    Args:
        options: of `utterd say`; what decides how the daemon plays is passed on to it.
        config: as those options make it.

    Raises:
        DaemonError: it did not start, or its voice can't be loaded.
    """
    if not options.start or _answers(config):
        yield
        return
    made = [path for path in (config.run_dir, *config.run_dir.parents) if not path.exists()]
    command = [sys.executable, "-m", "utterd.daemon.cli", "serve", *_serve_options(options, config)]
    daemon = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_end_with(os.getpid()),  # noqa: PLW1509 - one call into the kernel
    )
    try:
        _wait_until_ready(daemon, config)
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        for path in made:
            with suppress(OSError):  # another uses it by now
                path.rmdir()


def _end_with(parent: int) -> Callable[[], None]:
    """Make a child get SIGTERM when we end, however we end: it is ours alone."""
    prctl = ctypes.CDLL(None).prctl  # looked up here, not in the child

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # we ended before it could ask
            os._exit(1)

    return ask


def _serve_options(options: argparse.Namespace, config: Config) -> list[str]:
    """How to run the daemon: as the options say, or into a file where there is no device."""
    given = [
        argument
        for name in ("config", "run_dir", "data_dir", "voice", "device", "wav")
        if (value := getattr(options, name)) is not None
        for argument in (f"--{name.replace('_', '-')}", str(value))
    ]
    given += ["--log-level", options.log_level or "warning"]
    if config.audio.sink == "device" and (problem := _no_device()):
        file = Path("utterd.wav").absolute()
        print(f"utterd: {problem}: speaking into {file}, at the pace of a device", file=sys.stderr)
        given += ["--wav", str(file)]
    return given


def _no_device() -> str:
    """Why nothing can be played; empty if something can."""
    from utterd.audio.devices import list_devices  # noqa: PLC0415 - loads numpy, for few calls
    from utterd.audio.sink import SinkError  # noqa: PLC0415 - the same

    try:
        return "" if list_devices() else "there is no sound device"
    except SinkError as error:
        return str(error)


def _answers(config: Config) -> bool:
    with Client(config, starting_s=0.0) as client:
        try:
            client.call("ping", timeout_s=0.5)
        except DaemonError:
            return False
    return True


def _wait_until_ready(daemon: "subprocess.Popen[bytes]", config: Config) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _answers(config):
        if daemon.poll() is not None or time.monotonic() > deadline:
            message = "the daemon did not start; run `utterd serve` to see why"
            raise DaemonError("unavailable", message)
        time.sleep(0.1)
    with Client(config, starting_s=0.0) as client:  # asked once: asking makes it load the voice
        client.call("warmup", timeout_s=START_TIMEOUT_S)
