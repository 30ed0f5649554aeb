"""Whether something can be heard now, through which device, with which voice and runtime."""

import os
import time
from typing import Any

import msgspec

from utterd.daemon.memory import rss_bytes
from utterd.daemon.service import Service
from utterd.daemon.supervisor import State

HEARTBEAT_NS = 1_000_000_000
"""A device whose callback is older does not play."""


def describe(service: Service) -> dict[str, Any]:
    """The `health` reply."""
    opened, lost = service.player.opened, service.player.lost
    age_ns = time.monotonic_ns() - service.ring.heartbeat_ns
    released = service.player.released
    playing = opened is not None and age_ns < HEARTBEAT_NS and not released
    alive = service.player.alive
    voice = service.voices.default().partition("/")[0]
    worker = service.workers.by_voice.get(voice)
    warm = worker is not None and worker.ready is not None
    problems = []
    if not playing and not released:
        problems.append(lost.message if lost else "the sound device is not open yet")
    if service.no_default:
        problems.append(service.no_default)
    elif worker is not None and worker.broken:
        problems.append(worker.broken)
    elif not warm:
        problems.append(f"the voice {voice} is not warm yet")
    caches = [w.cache for w in service.workers.by_voice.values() if w.cache]
    problems += sorted({cache.problem for cache in caches if cache.problem})
    return {
        "ok": True,
        "audible": (playing or released) and warm,
        "problems": problems,
        "degraded": service.troubles.describe(),
        "device": {
            "open": playing,
            "released": released,
            "name": opened.device if opened else service.config.audio.device,
            "sink": service.config.audio.sink,
            "rate": opened.rate if opened else 0,
            "latency_ms": round(opened.latency_ms, 2) if opened else 0.0,
            "realtime": bool(opened and opened.realtime),
            "memory_locked": bool(opened and opened.memory_locked),
            "underruns": service.player.underruns - service.scheduler.sounding.text_waits,
        },
        "voices": [
            {
                "name": name,
                "state": one.child.state.value,
                "runtime": one.ready.runtime if one.ready else "",
                "real_time_factor": round(one.ready.real_time_factor, 4) if one.ready else 0.0,
                "restarts": one.child.restarts,
                "breaker": one.breaker.state.value,
                "pid": one.child.pid,
                "rss_bytes": one.rss_bytes,
                "renewals": one.child.renewals,
                "memory_problem": one.ceiling.problem,
                "problem": one.broken,
                "cache": msgspec.structs.asdict(one.cache) if one.cache else None,
            }
            for name, one in service.workers.by_voice.items()
        ],
        "granted": [
            {"process": name, "wish": g.wish, "asked": g.asked, "got": g.got, "reason": g.reason}
            for name, grants in (
                ("player", service.player.grants),
                *((f"worker {n}", one.grants) for n, one in service.workers.by_voice.items()),
            )
            for g in grants
        ],
        "player": {
            "state": service.player.child.state.value,
            "pid": service.player.child.pid,
            "restarts": service.player.child.restarts,
            "rss_bytes": service.player.rss_bytes,
            "renewals": service.player.child.renewals,
            "memory_problem": service.player.ceiling.problem,
            "reference": {
                "subscribed": bool(alive and alive.subscribed),
                "frames": alive.reference_frames if alive else 0,
                "dropped": alive.reference_dropped if alive else 0,
                "problem": alive.reference_problem if alive else "",
            },
        },
        "nursery": {
            "state": service.workers.nursery.state.value,
            "pid": service.workers.nursery.pid,
            "restarts": service.workers.nursery.restarts,
            "rss_bytes": service.workers.nursery_rss_bytes,
        },
        "daemon": {
            "pid": os.getpid(),
            "rss_bytes": rss_bytes(),
            "renewals": service.renewal.count,
            "renewed_because": service.renewal.because,
            "memory_problem": service.renewal.ceiling.problem,
            "uptime_s": round((time.monotonic_ns() - service.began_ns) / 1e9, 1),
        },
    }


def measure(service: Service) -> dict[str, Any]:
    """The `metrics` reply: what was counted, and what `health` and the queue are now."""
    now = describe(service)
    scheduler = service.scheduler
    return (
        service.metrics.describe()
        | {
            "queue": {
                "on_way": len(scheduler.line.way.on_way),
                "waiting": len(scheduler.line.waiting),
                "limit": service.config.limits.waiting,
                "paused": scheduler.line.paused,
            },
        }
        | {key: now[key] for key in ("audible", "degraded", "device", "voices", "player", "daemon")}
    )


def ready(service: Service) -> bool:
    """Whether the default voice is warm and the player has tried its device."""
    voice = service.voices.default().partition("/")[0]
    worker = service.workers.by_voice.get(voice)
    return (
        worker is not None
        and worker.ready is not None
        and service.player.child.state is State.READY
    )
