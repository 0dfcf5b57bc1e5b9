"""A diff names the file as `git apply` finds it from the project's folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gatecert.campaign.diffs import with_paths
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.provenance import Places
from gatecert.mutants.plant import unified_diff
from tests.runs import mutant, subject_run


def head_of(path: Path, root: Path, import_path: Path) -> list[str]:
    """The first lines of a mutant's diff."""
    one = msgspec.structs.replace(
        mutant("softmax/k/wrong/1-aaaaaa"),
        path=str(path),
        diff=unified_diff("rowkit.rms", "a = 1\n", "a = 2\n"),
    )
    part = msgspec.structs.replace(subject_run(), mutants=(one,))
    places = Places(root, (str(import_path),))
    (found,) = with_paths(PlannedSubject(part, {}, (), 0.0), places).run.mutants
    return found.diff.splitlines()[:3]


def test_of_a_src_layout_the_path_begins_with_src(tmp_path: Path) -> None:
    path = tmp_path / "src" / "rowkit" / "rms.py"
    assert head_of(path, tmp_path, tmp_path / "src") == [
        *("--- a/src/rowkit/rms.py", "+++ b/src/rowkit/rms.py"),
        "@@ -1 +1 @@",
    ]


def test_outside_of_the_project_it_is_the_modules(tmp_path: Path) -> None:
    path = tmp_path / "rowkit" / "rms.py"
    assert head_of(path, tmp_path / "project", tmp_path)[0] == "--- a/rowkit/rms.py"
