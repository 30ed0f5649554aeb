"""From a worker's configuration to its cache."""

import logging
import secrets
from pathlib import Path

from utterd.engine.cache import keys
from utterd.engine.cache.store import Cache
from utterd.engine.messages import Configure
from utterd.engine.voices.package import VoicePackage

log = logging.getLogger("cache")


def open_cache(
    configure: Configure, package: VoicePackage, runtime: str, threads: int
) -> Cache | None:
    """The cache of a voice that was just loaded; None if it is to have none.

    A folder that can't be used leaves the cache in memory, and is told.

    Args:
        configure: how large it may be, and where it lies.
        package: as it was loaded, whatever has taken its place since.
        runtime: what runs it.
        threads: of one run.
    """
    if not configure.cache_memory_bytes and not configure.cache_disk_bytes:
        return None
    identity = keys.identity(package, runtime, threads)
    key, kept, problem = secrets.token_bytes(keys.SECRET_BYTES), None, ""
    if configure.cache_disk_bytes:
        # SQLite is 2 MB that few need.
        from utterd.engine.cache.disk import Disk  # noqa: PLC0415
        from utterd.engine.cache.secret import secret  # noqa: PLC0415

        folder = Path(configure.cache_dir)
        try:
            key = secret(folder)
        except OSError as error:
            problem = f"nothing is cached on disk: {folder}: {error.strerror}"
            log.warning("%s", problem)
        else:
            limit, ttl_s = configure.cache_disk_bytes, configure.cache_ttl_s
            kept = Disk(folder, package.manifest.name, identity, limit, ttl_s)
    return Cache(
        keys.Keys(key, identity),
        configure.cache_memory_bytes,
        configure.cache_ttl_s,
        kept,
        problem,
    )
