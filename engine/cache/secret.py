"""The secret that the keys of a cache on disk are hashed under; it lies beside the database."""

import contextlib
import os
import secrets
from pathlib import Path

from utterd.engine.cache.database import make
from utterd.engine.cache.keys import SECRET_BYTES

FILE = "key"


def secret(folder: Path) -> bytes:
    """The secret of a cache, made where there is none.

    Raises:
        OSError: it can be neither read nor made.
    """
    make(folder)
    path = folder / FILE
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            found = path.read_bytes()
            if len(found) == SECRET_BYTES:
                return found
            path.unlink()  # cut short: whatever was kept under it is lost
        mine = folder / f".{FILE}.{os.getpid()}"
        mine.unlink(missing_ok=True)
        descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):  # another worker was faster: its secret holds
            os.link(mine, path)
        mine.unlink()
    return path.read_bytes()
