"""Subjects: an operation bound to a team's implementation, as plain data."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from gatecert.errors import EnvironmentFailure, GatecertError, UsageError, did_you_mean
from gatecert.launch_log import LoggedShape
from gatecert.profiles import Profile
from gatecert.wording import listed

DTYPES = ("float32", "float16", "bfloat16")
LAYOUT_NAMES = (
    "contiguous",
    "transposed",
    "inner_transposed",
    "sliced",
    "row_padded",
    "offset_base",
    "expanded",
    "spread",
    "far_rows",
    "far_span",
    "strided_vectors",
)
"""The names of `gatecert.oracle.layouts`, known here without importing torch."""


class Subject(msgspec.Struct, frozen=True):
    """What is under test: an entry point, its operation and its declared domain.

    `entry` is `module:attribute.path`. `operation` names a built-in operation or is
    `module:attribute` of one made by `@operation`; without one only external gates apply.
    `blocks` gives block sizes per dim where launches do not show them; `dims` adds sizes of
    the team's own; `intermediate` declares a step in lower precision than fp32 (`"input"` =
    the input's dtype); `import_paths` are folders put on `sys.path` to import the entry.
    `profile` says what is planted and how the oracle looks; `configs` is how many autotune
    configurations its kernels have at most (0: not known): by its profile each runs every case,
    else they take turns. `logged` are calls of production to be tried, and `log_notes` tell what
    else the log holds.
    """

    name: str
    entry: str
    operation: str | None = None
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("contiguous",)
    kernels: tuple[str, ...] = ()
    blocks: dict[str, tuple[int, ...]] = {}
    dims: dict[str, tuple[int, ...]] = {}
    intermediate: str | None = None
    import_paths: tuple[str, ...] = ()
    profile: Profile = Profile()
    configs: int = 0
    logged: tuple[LoggedShape, ...] = ()
    log_notes: tuple[str, ...] = ()

    @property
    def entry_module(self) -> str:
        """The module part of `entry`."""
        return self.entry.partition(":")[0]


def load_attribute(spec: str, what: str, folders: Iterable[str] = ()) -> Any:
    """Import `module:attribute.path`; `folders` are the import paths that it is looked for in.

    Raises:
        UsageError: the spec has no colon, or a package or module that is there has no such module
            or attribute.
        EnvironmentFailure: the module is missing or fails on import.
    """
    module_name, colon, path = spec.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"{what} {spec!r}: write it as 'package.module:function'")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        _check_submodule(module_name, error.name or "", f"{what} {spec!r}")
        raise EnvironmentFailure(
            f"{what} {spec!r}: no module named {error.name!r}; install it, or add its folder to "
            f"import_paths in gatecert.toml{_absent(folders)}"
        ) from error
    except GatecertError:  # a schema that does not fit, for instance, says so itself
        raise
    except Exception as error:
        raise EnvironmentFailure(
            f"{what} {spec!r}: importing {module_name} raised {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{what} {spec!r}: {module_name} has no {path!r}") from None
    return found


def _check_submodule(wanted: str, missing: str, where: str) -> None:
    """Raise a `UsageError` where the package is there and the named module of it is not."""
    package, _, name = missing.rpartition(".")
    if not package or not f"{wanted}.".startswith(f"{missing}."):
        return
    folders = getattr(sys.modules.get(package), "__path__", None)
    if folders is None:
        raise UsageError(f"{where}: {package} is no package, so it has no module {name!r}")
    known = [module.name for module in pkgutil.iter_modules(folders)]
    hint = did_you_mean(name, known) if known else "it has none"
    raise UsageError(f"{where}: package {package!r} has no module {name!r}; {hint}")


def _absent(folders: Iterable[str]) -> str:
    """Which import paths do not exist."""
    missing = [folder for folder in folders if not Path(folder).is_dir()]
    return f" (there is no folder {listed(missing)}, which it names)" if missing else ""


def load_entry(subject: Subject) -> Callable[..., Any]:
    """The subject's entry point, imported; errors as `load_attribute`."""
    what = f"entry of subject {subject.name!r}"
    entry = load_attribute(subject.entry, what, subject.import_paths)
    if not callable(entry):
        raise UsageError(f"entry {subject.entry!r} of subject {subject.name!r} is not callable")
    return entry  # type: ignore[no-any-return]
