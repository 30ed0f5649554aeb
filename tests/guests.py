"""Scripts of cases that run inside a virtual machine or a container: a JSON line for each case.

Inside, only the standard library is there; this file is copied in beside the script.
"""

import ast
import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def names(script: Path) -> list[str]:
    """Cases of a script (functions called `case_...`), without running it."""
    body = ast.parse(script.read_text()).body
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("case_")]


def results(output: str) -> dict[str, dict[str, Any]]:
    """By case, what a guest printed: `error` (empty if it passed) and `seconds`."""
    # On a console, what others print may stand before it in the same line, or in its middle.
    found = {}
    for line in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            case = json.JSONDecoder().raw_decode("{" + line.partition("CASE {")[2])[0]
            found[case["case"]] = case
    return found


def run(names_in_script: Mapping[str, Any], clean_up: Callable[[], None] = lambda: None) -> None:
    """Run every case of the calling script, in order; one that fails does not end the others.

    What came of them is printed twice, at once and at the end: others write on the same console.

    Args:
        names_in_script: Its `globals()`.
        clean_up: Called after a case that failed.
    """
    lines = []
    for name, case in list(names_in_script.items()):
        if not name.startswith("case_"):
            continue
        began, error = time.monotonic(), ""
        try:
            case()
        except Exception:  # noqa: BLE001 - whatever it is, it belongs to this case alone
            error = traceback.format_exc()
            clean_up()
        said = {"case": name, "error": error, "seconds": round(time.monotonic() - began, 1)}
        lines.append("CASE " + json.dumps(said) + "\n")
        sys.stdout.write(lines[-1])
        sys.stdout.flush()
    sys.stdout.write("\n" + "".join(lines))
    sys.stdout.flush()
