"""`python -m utterd.audio.main`: the player process. Started by the daemon, not by people."""

import argparse
import faulthandler
import gc
import os
import select
import signal
import socket
import sys

from utterd.audio.channel import Channel
from utterd.audio.messages import Configure, ToPlayer
from utterd.audio.noise import StderrLimiter
from utterd.audio.player import Player
from utterd.audio.ring import Ring, RingError

EXIT_USAGE = 2


def main() -> None:
    """Play until the daemon says so or is gone. Exit status 0, or 75 where the sink hung."""
    parser = argparse.ArgumentParser(prog="utterd player", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True, help="inherited socket")
    parser.add_argument("--ring-fd", type=int, required=True, help="inherited memfd")
    parser.add_argument("--wake-fd", type=int, required=True, help="inherited eventfd")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the daemon to hand on
    try:
        ring = Ring.attach(arguments.ring_fd)
        os.set_blocking(arguments.wake_fd, False)
        control = socket.socket(fileno=arguments.control_fd)
    except (RingError, OSError) as error:
        print(f"utterd player: {error}; only the daemon can start it", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    channel: Channel[ToPlayer] = Channel(control, ToPlayer)
    configure = _wait_for_configure(channel)
    stderr = StderrLimiter()
    faulthandler.enable(stderr.real)
    player = Player(channel, ring, arguments.wake_fd, configure, stderr)
    signal.signal(signal.SIGTERM, lambda *_: player.stop())
    gc.collect()
    gc.freeze()
    gc.disable()
    player.run()
    channel.flush()
    # Not sys.exit: PortAudio's own clean-up at exit can hang.
    os._exit(0)


def _wait_for_configure(channel: Channel[ToPlayer]) -> Configure:
    while not channel.closed:
        select.select([channel], [], [])
        for message in channel.receive():
            if isinstance(message, Configure):
                return message
    sys.exit(0)  # the daemon has changed its mind, or is gone


if __name__ == "__main__":
    main()
