"""Rules that hold for all rooms: who may import whom, and the standard library stays itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "daemon": ("utterd.engine", "utterd.audio", "utterd.sysconfig"),
    "engine": ("utterd.audio.ring",),
    "audio": (),
    "sysconfig": (),
}
"""By room, what it may import besides itself: DESIGN's table."""
STANDARD_LIBRARY_ONLY = ("sysconfig",)
"""Runs as root, before anything else: no third party's code in it (pynvml is asked for by name)."""


def files(room):
    return sorted((ROOT / room).rglob("*.py"))


def imported(file):
    """Every module a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            # `from utterd.audio import ring` imports utterd.audio.ring (or a name of utterd.audio).
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def within(module, allowed):
    return module == allowed or module.startswith(f"{allowed}.")


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_arrows_between_rooms(room):
    allowed = (f"utterd.{room}", *MAY_IMPORT[room])
    assert files(room)
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in files(room)
        for module in imported(file)
        if within(module, "utterd") and not any(within(module, one) for one in allowed)
    ]
    assert not wrong


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_is_imported_by_its_folder(room):
    """`import daemon.x` would make a second copy of every class."""
    rooms = tuple(name for name in MAY_IMPORT if name != "sysconfig")
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in files(room)
        for module in imported(file)
        if any(within(module, name) for name in rooms)
    ]
    assert not wrong


@pytest.mark.parametrize("room", STANDARD_LIBRARY_ONLY)
def test_what_runs_as_root_needs_the_standard_library_alone(room):
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in files(room)
        for module in imported(file)
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "utterd"}
    ]
    assert not wrong


def test_sysconfig_is_no_package_of_its_own():
    """With an __init__.py, Python started in this folder would import ours for the library's."""
    assert not (ROOT / "sysconfig/__init__.py").exists()
    shadowing = [
        path.name
        for path in ROOT.iterdir()
        if path.stem in sys.stdlib_module_names
        and (path.suffix == ".py" or (path / "__init__.py").exists())
    ]
    assert not shadowing


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "pip", "--version"],
        ["-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"],
        ["-c", "import sysconfig, sys; assert sysconfig.__file__.startswith(sys.base_prefix)"],
        ["-m", "venv", "--help"],
    ],
)
def test_python_works_in_the_repository(arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
