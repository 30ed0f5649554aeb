"""A full disk: what was accepted as durable can always be ended, and nothing more is accepted.

The disks are real: a small tmpfs in a mount namespace of its own, gone with its last process.
"""

import subprocess
import sys
from pathlib import Path

import pytest

STEPS = Path(__file__).with_name("full_disk.py")


@pytest.mark.parametrize(
    "steps",
    [
        ["every_end_is_written", "nothing_comes_again"],
        ["full_from_the_start"],
        ["an_end_that_could_not_be_written_is_written_later"],
    ],
    ids=lambda steps: steps[0],
)
def test_on_a_full_disk(tmp_path: Path, steps: list[str]) -> None:
    runs = " && ".join(f'"$0" -P "$1" "$2" {step}' for step in steps)
    script = f'mount -t tmpfs -o size=24m none "$2" && {runs}'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script),
            *(sys.executable, str(STEPS), str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
