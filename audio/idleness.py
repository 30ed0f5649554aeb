"""Whether there is anything to play: when a sink may be let go, and when it is wanted again."""

from utterd.audio._callback import Core
from utterd.audio.feed import Feed


class Idleness:
    """How long there has been nothing to play.

    Args:
        core: The audio thread's data.
        feed: What fills it.
        seconds: After so long the sink may be let go; 0: never.
    """

    def __init__(self, core: Core, feed: Feed, seconds: float) -> None:
        self.expected = False
        """The daemon has said that sound is on its way."""
        self._core = core
        self._feed = feed
        self._seconds = seconds
        self._since = 0.0

    @property
    def wanted(self) -> bool:
        """Whether a sink that was let go is needed: sound is there, or on its way."""
        return self.expected or not self._feed.empty

    def begin(self, at: float) -> None:
        """Something sounded, or the sink was opened.

        Args:
            at: When the last of it has left the sink, in seconds of CLOCK_MONOTONIC.
        """
        self._since = at

    def over(self, now: float) -> bool:
        """Whether an open sink has had nothing to play for long enough to be let go."""
        if self.wanted or self._core.queued > 0 or self._core.place()[0] != 0:
            self._since = max(self._since, now)
        return 0.0 < self._seconds <= now - self._since
