"""What the README says of commands and configuration is what there is."""

import re
from pathlib import Path

import msgspec
import pytest

from utterd.daemon import events, protocol
from utterd.daemon.cli import main
from utterd.daemon.config import Config

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_configuration_shown_is_the_built_in_one_and_whole():
    (text,) = blocks("toml")
    shown = msgspec.toml.decode(text.encode())
    assert shown == msgspec.to_builtins(Config())


def test_every_command_and_field_is_described():
    commands = README.partition("### Commands")[2].partition("### Events")[0]
    for command in protocol.AnyCommand.__args__:
        name = str(command.__struct_config__.tag)
        assert re.search(rf"`{name}[`,]|, {name}[`,]", commands), name
        for field in command.__struct_fields__:
            assert f"`{field}`" in commands, f"{name}.{field}"


@pytest.mark.parametrize("arguments", [[], ["voices"]], ids=str)
def test_every_command_of_the_command_line_is_described(arguments, capfd):
    with pytest.raises(SystemExit):
        main([*arguments, "no-such-command"])
    offered = capfd.readouterr().err.partition("choose from")[2].partition(")")[0]
    described = README.partition("## A tour")[2].partition("## Talk to it")[0]
    table = "".join(line.split("|")[1] for line in described.splitlines() if line[:1] == "|")
    names = re.findall("[a-z]+", offered)
    assert names
    assert not [name for name in names if not re.search(rf"\b{name}\b", table)]


def test_every_event_is_described():
    described = README.partition("### Events")[2].partition("## Configuration")[0]
    for event in events.Event.__subclasses__() + events.Terminal.__subclasses__():
        if event is not events.Terminal:
            assert f"`{event.__struct_config__.tag}`" in described


def test_the_python_examples_are_python():
    for example in blocks("python"):
        compile(example, "README.md", "exec")
