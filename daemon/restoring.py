"""Durable utterances of an earlier daemon: taken up again, or told to be over."""

import logging
import time

from utterd.daemon import events
from utterd.daemon.durable import Durable
from utterd.daemon.journal import Entry, JournalError
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.scheduler import Scheduler
from utterd.daemon.voices import Voices

log = logging.getLogger("restoring")


def restore(durable: Durable, voices: Voices, scheduler: Scheduler) -> None:
    """Give the scheduler what was accepted as durable and was not spoken to its end."""
    try:
        entries = durable.left()
    except JournalError as error:
        log.error("durable utterances are not taken up", extra={"reason": str(error)})
        return
    for entry in entries:
        _restore(entry, voices, scheduler)


def _restore(entry: Entry, voices: Voices, scheduler: Scheduler) -> None:
    now_ns, left_ns = time.monotonic_ns(), entry.expires_unix_ns - time.time_ns()
    if entry.expires_unix_ns and left_ns <= 0:
        scheduler.over(entry.client, entry.id, events.Dropped(reason="expired"))
        return
    try:
        voice = voices.choose(entry.command)
    except ProtocolError as error:
        failed = events.Failed(code=error.code, message=error.message, recoverable=False)
        scheduler.over(entry.client, entry.id, failed)
        return
    scheduler.restore(entry, voice, now_ns + left_ns if entry.expires_unix_ns else 0, now_ns)
