"""The JSON Schema of gatecert.toml, and what each key means: both from the records themselves."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gatecert.config import ConfigFile, Require, SubjectTable
from gatecert.gates.config import TOOLS, GateConfig, OracleConfig
from gatecert.subjects import DTYPES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLES: Mapping[str, type[msgspec.Struct]] = {
    "": ConfigFile,
    "subject.NAME": SubjectTable,
    "gate.NAME": GateConfig,
    "oracle.NAME": OracleConfig,
    "require": Require,
}
"""The tables of the file, by how they are written."""


def config_schema() -> dict[str, Any]:
    """JSON Schema of a whole gatecert.toml."""
    schema: dict[str, Any] = msgspec.json.schema(ConfigFile)
    for struct in TABLES.values():
        definition = schema["$defs"][struct.__name__]
        definition["description"] = _first_sentence(inspect.getdoc(struct) or "")
        for key, text in key_docs(struct).items():
            definition["properties"][key] = {
                **_described(definition["properties"][key]),
                "description": text,
            }
    for struct_name, key, allowed in _choices():
        items = schema["$defs"][struct_name]["properties"][key]
        # An array of them, or one of them or nothing.
        places = [items["items"]] if "items" in items else items.get("anyOf", [items])
        for place in places:
            if place.get("type") == "string":
                place["enum"] = list(allowed)
    _with_comparators(schema)
    return {"$schema": _DIALECT, "title": "gatecert.toml", **schema}


def render_schema() -> str:
    """The schema as text, the same every time."""
    return msgspec.json.format(msgspec.json.encode(config_schema()), indent=2).decode() + "\n"


@functools.cache
def key_docs(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """What each key of a table means, from the text below its field."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _with_comparators(schema: dict[str, Any]) -> None:
    """The comparators of an `[oracle.NAME]`: read late, so that reading the file needs no torch."""
    from gatecert.oracle.comparators import Comparator

    (comparator,), definitions = msgspec.json.schema_components(
        [Comparator], ref_template="#/$defs/{name}"
    )
    schema["$defs"].update(definitions)
    key = schema["$defs"]["OracleConfig"]["properties"]["comparator"]
    key.pop("default", None)  # none, which is no comparator
    key.pop("type", None)
    key.update(comparator)


def _choices() -> Iterator[tuple[str, str, Sequence[str]]]:
    from gatecert.oracle.layouts import LAYOUTS
    from gatecert.oracle.strategies import STRATEGIES
    from gatecert.profiles import profiles

    yield "SubjectTable", "dtypes", DTYPES
    yield "SubjectTable", "layouts", tuple(LAYOUTS)
    yield "SubjectTable", "intermediate", ("input", "float16", "bfloat16", "tf32")
    yield "SubjectTable", "profile", tuple(profiles())
    yield "ConfigFile", "profile", ("", *profiles())
    yield "GateConfig", "tools", TOOLS
    yield "OracleConfig", "strategy", tuple(STRATEGIES)


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """A bare reference must not stand beside a description in older readers of schemas."""
    return {"allOf": [schema]} if set(schema) == {"$ref"} else schema


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())
