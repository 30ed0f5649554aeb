"""`utterd` as a process of its own: commands, what they print, how they complain."""

import subprocess
import sys
from contextlib import contextmanager

from tests.daemon_process import DaemonProcess

UTTERD = (sys.executable, "-P", "-m", "utterd.daemon.cli")
LONG = "This is a rather long text. It has several sentences. " * 20
PATIENCE_S = 100.0


def spawn(*arguments: str, under: tuple[str, ...] = (), **named) -> subprocess.Popen:
    """A command; Ctrl-C reaches it even where these tests run in the background.

    Args:
        arguments: behind `utterd`.
        under: a program that runs another, and its arguments.
        named: of `Popen`.
    """
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = ["env", "--default-signal=INT", *under, *UTTERD, *arguments]
    return subprocess.Popen(command, **(pipes | named))


def finish(process: subprocess.Popen, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    try:
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
    finally:
        process.kill()
    return subprocess.CompletedProcess(
        process.args, process.returncode, out.decode("utf-8", "replace"), err.decode()
    )


def run(*arguments: str, stdin: bytes = b"", **named) -> subprocess.CompletedProcess[str]:
    return finish(spawn(*arguments, **named), stdin)


def done(result: subprocess.CompletedProcess[str]) -> str:
    """Standard output of what was done without a complaint."""
    assert result.returncode == 0, result.stderr
    return result.stdout


def complaint(result: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line of an error."""
    assert result.returncode == code, (result.stdout, result.stderr)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("utterd")
    return line


def at(daemon: DaemonProcess) -> tuple[str, ...]:
    """Options that lead to a daemon."""
    return (
        *("--run-dir", str(daemon.config.run_dir)),
        *("--data-dir", str(daemon.config.data_dir)),
    )


@contextmanager
def held(daemon: DaemonProcess):
    """The daemon does not speak for the length of a block, and forgets what waited."""
    with daemon.client("holder") as client:
        client.call("pause")
        try:
            yield client
        finally:
            client.call("cancel", all=True)
            client.call("resume")
