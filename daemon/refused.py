"""What a refused value could have been: msgspec says what is wrong, this what would be right."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect

Kinds = Sequence[type[msgspec.Struct]]

_ALIKE = 0.8
"""How much a name is like another that it is taken for a slip; 1: the same."""
_LONGEST = 40
"""Characters of a name that is compared at all: to compare a megabyte takes seconds."""


def explain(message: str, path: str, kinds: Kinds) -> str:
    """Put what is possible into what msgspec says of a refused value.

    Args:
        message: msgspec's, without the place.
        path: of the value, such as `audio.sink`; empty: the whole.
        kinds: what the whole may be.
    """
    if message.startswith("Invalid enum value "):
        refused = message.removeprefix("Invalid enum value ")
        return f"{refused} is none of {_listed(_choices(path, kinds))}"
    if message.startswith("Object contains unknown field `"):
        name = message.split("`")[1]
        return (
            f"there is no `{name}`{_meant(name, _names(path, kinds), all_of_them=len(kinds) == 1)}"
        )
    if message.startswith("Invalid value '") and path == kinds[0].__struct_config__.tag_field:
        tag = message.removeprefix("Invalid value '").removesuffix("'")
        return f"there is no `{tag}`{_meant(tag, [str(k.__struct_config__.tag) for k in kinds])}"
    if "matching regex" in message:
        for field in _fields(path, kinds):
            if isinstance(field, inspect.Metadata) and field.extra_json_schema:
                return f"expected {field.extra_json_schema['description']}"
    return message


def _listed(values: Sequence[object]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _meant(name: str, names: Sequence[str], *, all_of_them: bool = True) -> str:
    """The one that is spelt alike, else all that there are."""
    alike = difflib.get_close_matches(name, names, 1, _ALIKE) if len(name) <= _LONGEST else []
    if alike and name != alike[0]:
        return f"; is `{alike[0]}` meant?"
    return f", only {', '.join(sorted(names))}" if all_of_them else " in it"


def _choices(path: str, kinds: Kinds) -> Sequence[object]:
    for field in _fields(path, kinds):
        if isinstance(field, inspect.LiteralType):
            return field.values
    return ()


def _names(path: str, kinds: Kinds) -> Sequence[str]:
    """Of the fields that the value at a path may have."""
    inside = [field.cls for field in _fields(path, kinds) if isinstance(field, inspect.StructType)]
    return sorted({name for kind in (inside if path else kinds) for name in kind.__struct_fields__})


def _fields(path: str, kinds: Kinds) -> Iterator[Any]:
    """The types of a field in each of the kinds that have it."""
    name, _, rest = path.partition(".")
    for kind in kinds:
        for field in msgspec.structs.fields(kind):
            if field.encode_name != name:
                continue
            found = inspect.type_info(field.type)
            if not rest:
                yield found
            elif isinstance(found, inspect.StructType):
                yield from _fields(rest, (found.cls,))
