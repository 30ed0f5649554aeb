"""The product as `make install` lays it out, staged into a folder."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "systemd/install.sh"


def run(act: str, destination: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the install script.

    Args:
        act: `install` or `uninstall`.
        destination: The folder that stands for `/`.
        variables: More of the script's variables.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("PREFIX", "PYTHON")},
        "DESTDIR": str(destination),
        "PIP": f"{sys.executable} -m pip",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **variables,
    }
    return subprocess.run(
        ["sh", str(SCRIPT), act],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
