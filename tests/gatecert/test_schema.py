"""Schema, documentation and records of the configuration say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from gatecert.schema import TABLES, config_schema, key_docs, render_schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")


def rows(table: str) -> dict[str, str]:
    """The keys of a section of docs/config.md with their defaults as they stand there."""
    heading = f"## `[{table}]`" if table else "## Top level"
    section = PAGE.split(heading)[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_documented_with_its_default(table: str) -> None:
    documented = rows(table)
    fields = msgspec.structs.fields(TABLES[table])
    assert sorted(documented) == sorted(field.name for field in fields)
    for field in fields:
        said = documented[field.name].strip("`")
        if field.required:
            assert said == "needed", field.name
        elif field.default not in (None, msgspec.NODEFAULT) and not isinstance(
            field.default, msgspec.Struct | dict
        ):
            assert said == json.dumps(msgspec.to_builtins(field.default)), field.name


def test_every_key_has_a_description_in_the_schema() -> None:
    schema = config_schema()
    for struct in TABLES.values():
        properties = schema["$defs"][struct.__name__]["properties"]
        assert list(properties) == list(struct.__struct_fields__)
        for key, value in properties.items():
            assert value.get("description"), f"{struct.__name__}.{key}"
            assert value["description"] == key_docs(struct)[key]


def test_unknown_keys_are_refused_by_the_schema_too() -> None:
    for name, definition in config_schema()["$defs"].items():
        assert definition["additionalProperties"] is False, name


def test_the_schema_names_what_a_key_may_hold() -> None:
    subject = config_schema()["$defs"]["SubjectTable"]["properties"]
    assert subject["dtypes"]["items"]["enum"] == ["float32", "float16", "bfloat16"]
    assert "row_padded" in subject["layouts"]["items"]["enum"]
    kinds = config_schema()["$defs"]["GateConfig"]["properties"]["kind"]["enum"]
    assert "pytest" in kinds


def test_the_committed_schema_is_fresh() -> None:
    path = ROOT / "docs" / "gatecert.schema.json"
    assert path.read_text(encoding="utf-8") == render_schema(), "run `make docs`"


EXAMPLES: list[dict[str, Any]] = [
    {
        "import_paths": ["src"],
        "subject": {"softmax": {"entry": "a:b", "dims": {"N": [4]}, "profile": "vendor-call"}},
        "gate": {"tests": {"kind": "pytest", "args": ["-q"]}},
        "require": {"kill_rate": 0.9, "classes": {"mask-missing": 1.0}},
    },
]


@pytest.mark.parametrize("document", EXAMPLES)
def test_a_good_document_is_valid_and_a_wrong_one_is_not(document: dict[str, Any]) -> None:
    jsonschema.validate(document, config_schema())
    document["subject"]["softmax"]["entri"] = "a:b"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, config_schema())
