"""What was said lately: in memory first, on disk what was said more than once."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utterd.engine.cache.keys import Keys
from utterd.engine.cache.stored import Stored
from utterd.engine.messages import CacheCounts

if TYPE_CHECKING:  # SQLite is 2 MB, which a worker without a cache on disk can do without
    from utterd.engine.cache.disk import Disk

_LARGEST_SHARE = 4
"""One segment takes at most a quarter of the room."""
_REMEMBERED = 4096
"""Keys that were said once and are no longer held."""
_TOUCHES = 10
"""An entry on disk that is used from memory is touched at most so many times a life."""
_ENTRY_BYTES = 1024
"""What an entry takes besides its samples."""


@dataclass(slots=True)
class _Held:
    stored: Stored
    size: int
    used_s: float
    on_disk_s: float
    """When its entry on disk was last written or touched; 0: there is none."""


class Cache:
    """Segments by key. Threads that call it take turns, but for `counts`.

    Args:
        keys: makes the keys.
        memory_bytes: room in memory; 0: none is held there.
        ttl_s: what was not said for so long is forgotten.
        disk: what was said twice goes there; None: nothing does.
        problem: why there is no disk although there should be.
    """

    def __init__(
        self,
        keys: Keys,
        memory_bytes: int,
        ttl_s: float,
        disk: "Disk | None" = None,
        problem: str = "",
    ) -> None:
        self.keys = keys
        self.forgotten = 0
        """How often `forget` was called: what is being made then is not kept."""
        self._memory_bytes = memory_bytes
        self._ttl_s = ttl_s
        self._disk = disk
        self._problem = problem
        self._held: OrderedDict[bytes, _Held] = OrderedDict()
        self._once: OrderedDict[bytes, None] = OrderedDict()
        self._bytes = 0
        self._hits = self._disk_hits = self._misses = self._evictions = 0

    def get(self, key: bytes) -> Stored | None:
        """What was said under a key, if it is still known."""
        now_s = time.monotonic()
        self._expire(now_s)
        held = self._held.get(key)
        if held is not None:
            self._hits += 1
            held.used_s = now_s
            self._held.move_to_end(key)
            self._to_disk(key, held, now_s)
            return held.stored
        if self._disk is not None and (stored := self._disk.get(key)) is not None:
            self._hits += 1
            self._disk_hits += 1
            self._hold(key, _Held(stored, _size(stored), now_s, now_s))
            return stored
        self._misses += 1
        return None

    def put(self, key: bytes, stored: Stored) -> None:
        """Keep what was just said."""
        now_s = time.monotonic()
        stored.samples.flags.writeable = False
        held = _Held(stored, _size(stored), now_s, 0.0)
        if key in self._once:
            self._to_disk(key, held, now_s)
        self._once[key] = None
        self._once.move_to_end(key)
        if len(self._once) > _REMEMBERED:
            self._once.popitem(last=False)
        self._hold(key, held)

    def forget(self) -> None:
        """Whatever was said with this voice is known no longer, on disk neither."""
        self.forgotten += 1
        self._held.clear()
        self._once.clear()
        self._bytes = 0
        if self._disk is not None:
            self._disk.clear()

    def counts(self) -> CacheCounts:
        """What happened since the voice was loaded; may be asked by any thread."""
        disk = self._disk
        return CacheCounts(
            hits=self._hits,
            disk_hits=self._disk_hits,
            misses=self._misses,
            evictions=self._evictions + (disk.evictions if disk else 0),
            damaged=disk.damaged if disk else 0,
            entries=len(self._held),
            bytes=self._bytes,
            disk_bytes=disk.bytes if disk else 0,
            problem=disk.problem if disk else self._problem,
        )

    def _to_disk(self, key: bytes, held: _Held, now_s: float) -> None:
        """It was said again: it shall be there after a restart as well."""
        if self._disk is None:
            return
        if not held.on_disk_s:
            if self._disk.put(key, held.stored):
                held.on_disk_s = now_s
        elif now_s - held.on_disk_s > self._ttl_s / _TOUCHES:
            self._disk.touch(key)
            held.on_disk_s = now_s

    def _hold(self, key: bytes, held: _Held) -> None:
        if held.size * _LARGEST_SHARE > self._memory_bytes:
            return
        if (old := self._held.pop(key, None)) is not None:
            self._bytes -= old.size
        self._held[key] = held
        self._bytes += held.size
        while self._bytes > self._memory_bytes:
            self._drop_oldest()

    def _expire(self, now_s: float) -> None:
        while self._held and now_s - next(iter(self._held.values())).used_s > self._ttl_s:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, held = self._held.popitem(last=False)
        self._bytes -= held.size
        self._evictions += 1


def _size(stored: Stored) -> int:
    return stored.samples.nbytes + _ENTRY_BYTES
