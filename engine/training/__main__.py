"""`python -m utterd.engine.training COMMAND`: corpus, fit, evaluate, recognise, export."""

import argparse
import importlib
import sys

_COMMANDS = {
    "corpus": "texts to the teacher's speech, in shards",
    "fit": "teach a network on a corpus",
    "evaluate": "measure a network on held-out sentences and write a report",
    "recognise": "count what recognisers understand of teacher and network",
    "export": "write a voice package from the best weights",
}


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m utterd.engine.training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    named = sys.argv[1:2]
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if named == [name]:  # torch is loaded by the commands that need it only
            importlib.import_module(f"utterd.engine.training.{name}").add_arguments(command)
    arguments = parser.parse_args()
    module = importlib.import_module(f"utterd.engine.training.{arguments.command}")
    try:
        status: int = module.main(arguments)
    except (OSError, ValueError) as error:
        print(f"{arguments.command}: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
