"""`presets.toml` as it stands: names can be read without what judges by them."""

from __future__ import annotations

import functools
import sys
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@functools.cache
def read_presets() -> dict[str, Any]:
    """The file, read once and not yet checked."""
    text = resources.files("gatecert.gates.presets").joinpath("presets.toml").read_text("utf-8")
    return tomllib.loads(text)
