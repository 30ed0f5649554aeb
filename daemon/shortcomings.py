"""What is degraded by the look of things: states that nobody reports when they change."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from utterd.daemon.supervisor import State

if TYPE_CHECKING:
    from utterd.daemon.service import Service

Found = Iterator[tuple[str, str]]


def find(service: "Service") -> dict[str, str]:
    """Messages by what is degraded; daemon/README.md has the table."""
    return dict(
        found
        for look in (_journal, _voices, _sound, _machine, _memory, _ducking)
        for found in look(service)
    )


def _journal(service: "Service") -> Found:
    durable = service.durable
    if durable.problem:
        behind = f"{durable.behind} ended texts would be said again after a crash; "
        yield "journal", (behind if durable.behind else "") + durable.problem


def _voices(service: "Service") -> Found:
    if service.no_default:
        yield "default voice", service.no_default
    for name, worker in service.workers.by_voice.items():
        if worker.cache is not None and worker.cache.problem:
            yield f"cache of {name}", worker.cache.problem
        if worker.ready is not None and worker.ready.real_time_factor > 1.0:
            yield (
                f"speed of {name}",
                f"the voice {name} takes {worker.ready.real_time_factor:.1f} s for a second of "
                "speech, so sound will stop in between; choose a faster one",
            )
    if service.workers.nursery.state in (State.WAITING, State.RENEWING, State.BROKEN):
        yield "nursery", "it is started again; voices take longer to load meanwhile"


def _sound(service: "Service") -> Found:
    opened, wanted = service.player.opened, service.config.audio
    if opened is None:
        return
    if wanted.rate and opened.rate != wanted.rate:
        yield "device rate", f"{opened.device} runs at {opened.rate} Hz, not {wanted.rate} Hz"
    if wanted.sink != "device":
        return
    if not opened.realtime:
        yield (
            "real-time priority",
            "the audio thread has none, so sound may stop under load; see `utterd doctor`",
        )
    if not opened.memory_locked:
        yield (
            "locked memory",
            "the player's memory may be swapped out, so sound may stop; see `utterd doctor`",
        )


def _machine(service: "Service") -> Found:
    processes = [("player", service.player.grants)]
    processes += [(f"worker {n}", w.grants) for n, w in service.workers.by_voice.items()]
    for process, grants in processes:
        for grant in grants:
            if not grant.granted:
                yield f"{grant.wish} of {process}", grant.reason


def _memory(service: "Service") -> Found:
    ceilings = [("daemon", service.renewal.ceiling), ("player", service.player.ceiling)]
    ceilings += [(f"worker {n}", w.ceiling) for n, w in service.workers.by_voice.items()]
    for process, ceiling in ceilings:
        if ceiling.problem:
            yield f"memory of {process}", ceiling.problem


def _ducking(service: "Service") -> Found:
    if service.ducking.problem:
        yield "ducking", service.ducking.problem
