"""The folders that pytest's settings add to `sys.path`. Reads text only; pytest is not needed."""

from __future__ import annotations

import configparser
import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOML_SECTIONS = (("pytest",), ("tool", "pytest"), ("tool", "pytest", "ini_options"))


def python_path(settings: Path) -> tuple[Path, ...]:
    """What `pythonpath` names in a file of settings; nothing where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        if settings.suffix == ".toml":
            words = _of_toml(tomllib.loads(settings.read_text(encoding="utf-8")))
        elif settings.suffix in {".ini", ".cfg"}:
            words = _of_ini(settings.read_text(encoding="utf-8"))
        else:
            return ()
        return tuple((settings.parent / word).resolve() for word in words)
    return ()


def _of_ini(text: str) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    sections = (name for name in ("pytest", "tool:pytest") if parser.has_section(name))
    return [
        word for name in sections for word in parser.get(name, "pythonpath", fallback="").split()
    ]


def _of_toml(table: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for section in _TOML_SECTIONS:
        inner: Any = table
        for key in section:
            inner = inner.get(key, {}) if isinstance(inner, Mapping) else {}
        words = inner.get("pythonpath", []) if isinstance(inner, Mapping) else []
        found += words.split() if isinstance(words, str) else map(str, words)
    return found
