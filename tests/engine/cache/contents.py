"""What lies in a cache on disk."""

from contextlib import closing
from pathlib import Path

from utterd.engine.cache.database import BUSY_SECONDS, FILE, Database


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Entries and bytes of each voice; none where there is no cache."""
    if not (folder / FILE).exists():
        return {}
    with closing(Database(folder, BUSY_SECONDS)) as database:
        rows = database.connection().execute(
            "SELECT voice, count(*), sum(bytes) FROM segment GROUP BY voice ORDER BY voice"
        )
        return {voice: (count, size) for voice, count, size in rows}
