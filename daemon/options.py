"""Options that several commands share, and the parser that reads them."""

import argparse
from pathlib import Path
from typing import NoReturn

USAGE = 2
"""Exit code: wrong arguments, or a configuration that can't be used."""


class Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, as every error here is told."""

    def error(self, message: str) -> NoReturn:
        """Print a line, and exit."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def count(text: str) -> int:
    """Read a number of things.

    Raises:
        argparse.ArgumentTypeError: it is none from 1 on.
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def common_options(default: str | None = None) -> Parser:
    """Options of every command.

    Args:
        default: of those that are not given.
    """
    common = Parser(add_help=False, argument_default=default)
    common.add_argument("--config", type=Path, metavar="FILE", help="read this file alone")
    common.add_argument("--run-dir", metavar="DIR", help="folder of the sockets")
    common.add_argument("--data-dir", metavar="DIR", help="folder of the voices")
    common.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="how much is logged; spoken text appears at `debug` only",
    )
    return common


def speech_options(parser: argparse.ArgumentParser) -> None:
    """Add what decides how something is said."""
    parser.add_argument("--voice", help="NAME or NAME/SPEAKER")
    parser.add_argument(
        "--quality",
        choices=("fast", "balanced", "high"),
        help="which voice, where none is named; see `utterd voices benchmark`",
    )
    parser.add_argument("--rate", type=float, help="speed, 0.5 to 3")
    parser.add_argument("--pitch", type=float, help="0.5 to 2")
    parser.add_argument("--volume", type=float, help="0 to 2")
    parser.add_argument("--ssml", action="store_true", help="the text is SSML")


def sound_options(parser: argparse.ArgumentParser) -> None:
    """Add what decides where it is heard."""
    parser.add_argument("--device", help="`default`, or a part of the device's name")
    parser.add_argument(
        "--wav", metavar="FILE", help="write to this file, at the pace of a device, instead"
    )
