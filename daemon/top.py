"""`utterd top`: a live view of the daemon, drawn anew each second."""

import argparse
import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from utterd.daemon.client import STARTING_S, Client, DaemonError
from utterd.daemon.config import Config

PERIOD_S = 1.0

ENTER = "\x1b[?1049h\x1b[?25l"
"""To the other screen, without a cursor."""
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, TO_END_OF_LINE, TO_END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"

Replies = Mapping[str, Any]


def top(options: argparse.Namespace, config: Config) -> int:
    """Draw until q or Ctrl-C; once where the output is no terminal or `--once` asks for it.

    Returns:
        0; 1 where nothing can be heard now and this was drawn once.
    """
    metrics, queue = _ask(config, STARTING_S)
    if options.once or not sys.stdout.isatty():
        print("\n".join(view(metrics, queue)))
        return 0 if metrics["audible"] else 1
    with _screen():
        _live(config)
    return 0


def _live(config: Config) -> None:
    while True:
        try:
            lines = view(*_ask(config, 0.0))
        except DaemonError as error:  # it may be started again
            lines = [f"utterd: {error}"]
        _draw([time.strftime("%H:%M:%S  q quits"), "", *lines])
        if _pressed_q(PERIOD_S):
            return


def _ask(config: Config, starting_s: float) -> tuple[Replies, Replies]:
    # By a new connection each time: what a dead daemon owed must not answer the next question.
    with Client(config, starting_s=starting_s) as client:
        return client.call("metrics"), client.call("status")


def _draw(lines: list[str]) -> None:
    columns, rows = shutil.get_terminal_size()
    shown = [clip(line, columns) + TO_END_OF_LINE for line in lines[: rows - 1]]
    sys.stdout.write(HOME + "\r\n".join(shown) + "\r\n" + TO_END_OF_SCREEN)
    sys.stdout.flush()


def clip(line: str, columns: int) -> str:
    """As much of a line as fits; Chinese characters are two columns wide."""
    used = 0
    for at, character in enumerate(line):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > columns:
            return line[:at]
    return line


@contextmanager
def _screen() -> Iterator[None]:
    """The terminal's other screen and its keys one by one, put back however this ends."""
    keys = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(keys) if keys is not None else None
    ended = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if keys is not None:
            tty.setcbreak(keys)
        sys.stdout.write(ENTER)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, ended)


def _pressed_q(wait_s: float) -> bool:
    """Wait; whether q was pressed meanwhile, or the terminal is gone."""
    if not sys.stdin.isatty():
        time.sleep(wait_s)
        return False
    deadline = time.monotonic() + wait_s
    while (left_s := deadline - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left_s)[0]:
            keys = os.read(sys.stdin.fileno(), 64)
            if not keys or b"q" in keys.lower():
                return True
    return False


# ---- the view ----


def view(metrics: Replies, queue: Replies) -> list[str]:
    """The lines for a reply to `metrics` and one to `status`."""
    return [
        *_head(metrics),
        "",
        *_voices(metrics),
        "",
        *_queue(metrics, queue),
        "",
        *_stages(metrics),
    ]


def _head(metrics: Replies) -> Iterator[str]:
    device, daemon, player = metrics["device"], metrics["daemon"], metrics["player"]
    heard = "can be heard" if metrics["audible"] else "can NOT be heard"
    yield f"utterd   {heard}, up {_duration(daemon['uptime_s'])}, {_megabytes(daemon)}"
    yield (
        f"device   {device['name']} ({device['sink']}): "
        + (f"open, {device['rate']} Hz, " if device["open"] else "")
        + ("let go until there is sound, " if device["released"] else "")
        + ("" if device["open"] or device["released"] else "NOT open, ")
        + f"latency {device['latency_ms']} ms, real time "
        + ("granted" if device["realtime"] else "not granted")
    )
    for one in metrics["degraded"]:
        yield f"degraded {one['what']}: {one['message']}"
    yield f"sound    {device['underruns']} underruns"
    yield (
        f"player   {player['state']}, {_megabytes(player)}, {player['restarts']} restarts, "
        f"pid {player['pid']}"
    )


def _voices(metrics: Replies) -> Iterator[str]:
    columns = f"{'VOICE':<20}{'STATE':<10}{'BREAKER':<10}{'RUNTIME':<16}"
    yield f"{columns}{'RTF':>6}{'RSS':>9}{'RESTARTS':>10}"
    for voice in metrics["voices"]:
        yield (
            f"{voice['name']:<20}{voice['state']:<10}{voice['breaker']:<10}"
            f"{voice['runtime'] or '-':<16}{voice['real_time_factor']:>6.2f}"
            f"{_megabytes(voice):>9}{voice['restarts']:>10}"
        )
        if voice["problem"]:
            yield f"  {voice['problem']}"
        if voice["cache"]:
            yield from _cache(voice["cache"])


def _cache(cache: Replies) -> Iterator[str]:
    asked = cache["hits"] + cache["misses"]
    yield (
        f"  cache: {cache['hits']} of {asked} segments known ({cache['disk_hits']} from disk), "
        f"{cache['bytes'] / 1e6:.1f} MB in memory, {cache['disk_bytes'] / 1e6:.1f} MB on disk, "
        f"{cache['evictions']} evicted, {cache['damaged']} damaged"
    )
    if cache["problem"]:
        yield f"  {cache['problem']}"


def _queue(metrics: Replies, queue: Replies) -> Iterator[str]:
    sizes = metrics["queue"]
    ends = {name: sum(reasons.values()) for name, reasons in metrics["ends"].items()}
    yield (
        f"queue    {sizes['on_way']} on their way, {sizes['waiting']} of {sizes['limit']} waiting"
        + (", PAUSED" if sizes["paused"] else "")
    )
    yield "so far   " + ", ".join(f"{count} {name}" for name, count in ends.items())
    for one in queue["speaking"][:3]:
        yield (
            f"  {one['state']:<10}{one['priority']:<14}{one['voice']:<16}"
            f"{one['characters']} characters  {one['client']}/{one['id']}"
        )


def _stages(metrics: Replies) -> Iterator[str]:
    yield f"{'':<38}{'last minute':>30}{'since start':>20}"
    yield f"{'STAGE (ms)':<38}{'count':>10}{'median':>10}{'p95':>10}{'count':>10}{'mean':>10}"
    rows = metrics["stages"] | {"worker's overhead": metrics["worker_overhead"]}
    for name, row in rows.items():
        recent = row["last_minute"]
        label = name.replace("_to_", " -> ").replace("_", " ")
        times = (
            f"{recent['median_ms']:>10.2f}{recent['p95_ms']:>10.2f}"
            if recent["count"]
            else f"{'-':>10}{'-':>10}"
        )
        yield f"{label:<38}{recent['count']:>10}{times}{row['count']:>10}{row['mean_ms']:>10.2f}"


def _megabytes(process: Replies) -> str:
    return f"{process['rss_bytes'] / 1e6:.0f} MB"


def _duration(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
