"""A sample is fair, a time budget reaches a beginning of the same order, a diff is git's."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gatecert.campaign.changes import WHOLE, Lines, beyond_git, changed_lines
from gatecert.campaign.plan import Plan, PlannedSubject, gate_refs
from gatecert.campaign.records import Selection
from gatecert.campaign.selection import Deadline, draw, fair_order, rounds, select
from gatecert.campaign.shards import Work, originals_of, plan_tasks, settled
from gatecert.certificate import certify
from gatecert.errors import NothingScored, UsageError
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Candidate, CandidateKind, Kernel, Mutant, original
from gatecert.operators.records import Edit, ObservableBy
from gatecert.sandbox.protocol import ShardRequest, Task
from gatecert.store.keys import text_sha256
from tests.runs import comparison, mutant, run, subject_run


def many(subject: str = "softmax", *, large: int = 90, small: int = 10) -> list[Mutant]:
    """Mutants of two bug classes of very different size."""
    classes = [("mask-missing", large), ("race", small)]
    return [
        mutant(f"{subject}/k/{name}/{i}-aaaaaa", bug_class=name)
        for name, count in classes
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("length", [10, 20, 50, 99])
def test_any_beginning_of_the_order_holds_each_class_in_its_share(seed: int, length: int) -> None:
    beginning = fair_order(many(), seed)[:length]
    races = Counter(m.bug_class for m in beginning)["race"]
    assert abs(races - length / 10) <= 1


def test_the_order_is_a_permutation_that_seed_and_ids_decide() -> None:
    mutants = many()
    order = fair_order(mutants, 0)
    assert sorted(m.id for m in order) == sorted(m.id for m in mutants)
    assert fair_order(reversed(mutants), 0) == order
    assert fair_order(mutants, 1) != order


def test_a_mutant_that_goes_leaves_the_others_in_their_order() -> None:
    order = [m.id for m in fair_order(many(), 3) if m.bug_class == "race"]
    fewer = fair_order((m for m in many() if m.id != order[4]), 3)
    assert [m.id for m in fewer if m.bug_class == "race"] == order[:4] + order[5:]


def test_every_mutant_is_drawn_about_as_often_as_any_other() -> None:
    mutants = many(large=18, small=6)
    draws = Counter(m.id for seed in range(400) for m in fair_order(mutants, seed)[:8])
    assert len(draws) == 24
    assert min(draws.values()) > 85 and max(draws.values()) < 185  # a third of 400, +- 5 sigma


def plan(**changes: object) -> Plan:
    fields: dict[str, object] = {
        "root": Path(),
        "subjects": (),
        "gates": gate_refs(("oracle", "weak"), {}, ""),
        "operators": (),
    }
    return Plan(**{**fields, **changes})  # type: ignore[arg-type]


def work_of(*subjects: tuple[str, list[Mutant]]) -> Work:
    """The tasks of some subjects: the original, an adversary and the mutants, for two gates."""
    work = []
    for name, mutants in subjects:
        run = subject_run(name, mutants=tuple(mutants))
        candidates = [
            original(name),
            Candidate(f"{name}/adversary/zeros", CandidateKind.ADVERSARY, name),
            *(Candidate(m.id, CandidateKind.MUTANT, name) for m in mutants),
        ]
        tasks = [Task(one, gate) for gate in ("oracle", "weak") for one in candidates]
        work.append((PlannedSubject(run, {}, (), 1.0), tasks))
    return work


def ids(work: Work) -> list[str]:
    return list(dict.fromkeys(task.candidate.id for _, tasks in work for task in tasks))


def test_a_sample_keeps_controls_and_adversaries_and_says_of_how_many_it_is() -> None:
    rung = mutant("softmax/k/wrong-constant/1-bbbbbb", scored=False)
    work = work_of(("softmax", [*many(), rung]))
    kept, selection = draw(plan(sample=20), work, Selection())
    assert (selection.sample, selection.sample_of) == (20, 100)
    assert len(selection.not_sampled) == 81 and rung.id in selection.not_sampled
    assert ids(kept)[:2] == ["softmax/original", "softmax/adversary/zeros"]
    assert {*ids(kept)[2:], *selection.not_sampled} == {m.id for m in [*many(), rung]}
    assert len(ids(kept)) == 22
    assert draw(plan(sample=20), work, Selection()) == (kept, selection)


def test_no_sample_is_drawn_from_what_no_verdict_decides() -> None:
    work = work_of(("softmax", many()))
    equivalent = {m.id for m in fair_order(many(), 0)[:2]}
    kept, selection = draw(plan(sample=20), work, Selection(), equivalent)
    assert (selection.sample, selection.sample_of, len(selection.not_sampled)) == (20, 98, 78)
    assert equivalent.isdisjoint(selection.not_sampled) and equivalent.isdisjoint(ids(kept))
    rest = [m for m in many() if m.id not in equivalent]
    assert set(ids(kept)[2:]) == {m.id for m in fair_order(rest, 0)[:20]}


def test_no_verdict_decides_on_equivalents_and_on_what_the_lane_cannot_show() -> None:
    source = {"source_sha256": text_sha256("")}
    unseen = mutant("softmax/k/race/1-cccccc", observable_by=(ObservableBy.DEVICE,), **source)
    equivalent, usual = (mutant(m.id, **source) for m in many(large=2, small=0))
    ((subject, _),) = work_of(("softmax", [equivalent, usual, unseen]))
    subject = replace(subject, texts={usual.path: ""})
    said = {"softmax": {equivalent.id: comparison(equivalent.id, "equivalent")}}
    asked = plan(gates=gate_refs(("oracle",), {}, ""))
    assert settled(asked, [subject], said) == {equivalent.id, unseen.id}
    # Where there is time, the proof is checked.
    ((_, tasks),) = plan_tasks(asked, [subject], said)
    judged = [task.candidate.id for task in tasks if task.candidate.kind is CandidateKind.MUTANT]
    assert judged == [equivalent.id, usual.id]


def test_under_a_budget_what_no_verdict_decides_comes_last() -> None:
    rung = mutant("softmax/k/wrong-constant/1-bbbbbb", scored=False)
    equivalent = fair_order(many(), 0)[0]
    work = work_of(("softmax", [rung, *many()]))
    *_, last = rounds(plan(time_budget_s=9.0), work, {}, {equivalent.id})
    assert asked(last)[-2:] == [rung.id, equivalent.id]


def test_a_sample_larger_than_all_is_all() -> None:
    _, selection = draw(plan(sample=500), work_of(("softmax", many())), Selection())
    assert (selection.sample, selection.sample_of, selection.not_sampled) == (100, 100, ())


def asked(requests: list[ShardRequest]) -> list[str]:
    return list(dict.fromkeys(t.candidate.id for request in requests for t in request.tasks))


def test_without_a_budget_everything_is_one_list() -> None:
    work = work_of(("softmax", many()))
    originals, requests = rounds(plan(), work, {})
    assert asked(originals) == ["softmax/original"]
    assert sum(len(one.tasks) for one in (*originals, *requests)) == len(work[0][1])


def test_what_a_gate_took_on_the_originals_says_how_the_others_are_shared_out() -> None:
    said: dict[str, dict[tuple[str, str], Verdict]] = {"softmax": {}, "gelu": {}}
    work = work_of(("softmax", many("softmax")), ("gelu", many("gelu")))
    asking = rounds(plan(jobs=2), work, said)
    next(asking)
    for name, seconds in (("softmax", 0.1), ("gelu", 0.5)):
        first = original(name).id
        for gate in ("oracle", "weak"):
            accepted = Verdict(first, gate, GateOutcome.ACCEPTED, duration_s=seconds)
            said[name][first, gate] = accepted
    (requests,) = asking
    pieces = [request.subject.name for request in requests]
    assert pieces.count("gelu") == 5 * pieces.count("softmax") == 10
    for request in requests:
        assert set(request.originals) == {task.gate for task in request.tasks}
    places = [(task.candidate.id, task.gate) for request in requests for task in request.tasks]
    assert len(places) == len(set(places)) == 2 * (1 + 100) * 2


def test_under_a_budget_what_is_no_mutant_comes_first_and_the_ladder_last() -> None:
    rung = mutant("softmax/k/wrong-constant/1-bbbbbb", scored=False)
    budget = plan(time_budget_s=9.0)
    originals, first, *rest = rounds(budget, work_of(("softmax", [rung, *many()])), {})
    assert asked([*originals, *first]) == ["softmax/original", "softmax/adversary/zeros"]
    (mutants,) = [asked(requests) for requests in rest]
    assert mutants == [*(m.id for m in fair_order(many(), 0)), rung.id]


def test_no_subject_is_far_ahead_of_another_when_the_time_is_over() -> None:
    work = work_of(("softmax", many("softmax")), ("gelu", many("gelu")))
    _, _, *rest = rounds(plan(time_budget_s=9.0), work, {})
    order = [m.id for m in fair_order([*many("softmax"), *many("gelu")], 0)]
    reached: list[str] = []
    for requests in rest:
        reached += asked(requests)
        assert set(reached) == set(order[: len(reached)])
        assert len(asked(requests)) <= 16
    assert len(reached) == 200


def test_both_gates_judge_a_mutant_before_the_next_one_is_begun() -> None:
    _, _, requests = rounds(plan(time_budget_s=9.0, jobs=2), work_of(("softmax", many())), {})
    assert len(requests) == 2
    for request in requests:
        pairs = [task.candidate.id for task in request.tasks]
        assert pairs[::2] == pairs[1::2]


def test_a_deadline_binds_mutants_and_nothing_else() -> None:
    _, first, requests = rounds(plan(time_budget_s=9.0), work_of(("softmax", many())), {})
    over, none = Deadline(0.0), Deadline()
    assert not over.allows(requests[0]) and over.bind(requests[0]).stop_after_s == 0.0
    assert over.allows(first[0]) and over.bind(first[0]) == first[0]
    assert none.allows(requests[0]) and none.bind(requests[0]) == requests[0]
    ahead = Deadline.after(100.0).bind(requests[0]).stop_after_s
    assert ahead is not None and 99.0 < ahead <= 100.0


# What git says has changed.


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, tagged `base`: `k.py` and `sub/m.py` of ten lines each."""
    text = "".join(f"line {number}\n" for number in range(1, 11))
    (tmp_path / "sub").mkdir()
    for name in ("k.py", "sub/m.py"):
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text("generated.py\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "base")
    git(tmp_path, "tag", "base")
    return tmp_path


def changes(repository: Path, revision: str = "base", *names: str) -> dict[str, Lines]:
    paths = [str(repository / name) for name in names or ("k.py", "sub/m.py")]
    found = changed_lines(revision, repository, paths)
    return {str(Path(path).relative_to(repository)): lines for path, lines in found.items()}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_nothing_changed_is_nothing(repository: Path) -> None:
    assert changes(repository) == {}


@pytest.mark.parametrize("state", ["tree", "index", "commit"])
def test_an_edit_counts_wherever_it_is(repository: Path, state: str) -> None:
    edit(repository / "k.py", "line 4\nline 5\n", "line four\nline five\n")
    if state != "tree":
        git(repository, "add", ".")
    if state == "commit":
        git(repository, "commit", "-qm", "edit")
    assert changes(repository) == {"k.py": (range(4, 6),)}


def test_lines_that_were_removed_count_as_their_neighbours(repository: Path) -> None:
    edit(repository / "sub" / "m.py", "line 4\n", "")
    assert changes(repository) == {"sub/m.py": (range(3, 5),)}


def test_a_new_file_counts_wholly_unless_git_ignores_it(repository: Path) -> None:
    for name in ("new.py", "generated.py"):
        (repository / name).write_text("x\n")
    assert changes(repository, "base", "new.py", "generated.py") == {"new.py": WHOLE}


def test_a_file_that_moved_counts_by_what_changed_in_it(repository: Path) -> None:
    git(repository, "mv", "sub/m.py", "moved.py")
    edit(repository / "moved.py", "line 7\n", "line seven\n")
    assert changes(repository, "base", "moved.py") == {"moved.py": (range(7, 8),)}


def test_what_others_changed_since_the_branch_left_does_not_count(repository: Path) -> None:
    git(repository, "checkout", "-qb", "mine")
    edit(repository / "k.py", "line 2\n", "line two\n")
    git(repository, "commit", "-qam", "mine")
    git(repository, "checkout", "-q", "main")
    edit(repository / "sub" / "m.py", "line 9\n", "line nine\n")
    git(repository, "commit", "-qam", "theirs")
    git(repository, "checkout", "-q", "mine")
    assert changes(repository, "main") == {"k.py": (range(2, 3),)}


def test_what_a_person_configured_for_reading_diffs_does_not_matter(repository: Path) -> None:
    for name, value in (
        ("diff.noprefix", "true"), ("color.ui", "always"), ("diff.context", "5"),
        ("diff.interHunkContext", "9"), ("diff.external", "false"),
    ):  # fmt: skip
        git(repository, "config", name, value)
    edit(repository / "k.py", "line 2\n", "line two\n")
    edit(repository / "k.py", "line 6\n", "line six\n")
    assert changes(repository) == {"k.py": (range(2, 3), range(6, 7))}


@pytest.mark.parametrize("hidden_by", ["attributes", "skip-worktree", "assume-unchanged"])
def test_an_edit_counts_whatever_hides_it_from_a_diff(repository: Path, hidden_by: str) -> None:
    if hidden_by == "attributes":
        (repository / ".gitattributes").write_text("k.py -diff linguist-generated\n")
    else:
        git(repository, "update-index", f"--{hidden_by}", "k.py")
    edit(repository / "k.py", "line 4\n", "line four\n")
    assert changes(repository) == {"k.py": (range(4, 5),)}


def test_lines_are_counted_as_python_counts_them(repository: Path) -> None:
    (repository / "k.py").write_bytes(b"a = 1\rb = 2\r\nc = 3\nd = '\x0c'\ne = 5\n")
    git(repository, "commit", "-qam", "line ends")
    (repository / "k.py").write_bytes(b"a = 1\rb = 2\r\nc = 3\nd = '\x0c'\ne = 6\n")
    assert changes(repository, "HEAD") == {"k.py": (range(5, 6),)}


@pytest.mark.parametrize("committed", [False, True])
def test_a_submodule_is_compared_with_the_commit_that_it_was_at(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, committed: bool
) -> None:
    other = tmp_path_factory.mktemp("kernels")
    (other / "s.py").write_text("one\ntwo\n")
    git(other, "init", "-q", "-b", "main")
    git(other, "add", ".")
    git(other, "commit", "-qm", "kernels")
    allowed = ("-c", "protocol.file.allow=always")
    git(repository, *allowed, "submodule", "--quiet", "add", str(other), "kern")
    git(repository, "commit", "-qam", "submodule")
    assert changes(repository, "HEAD", "kern/s.py") == {}
    edit(repository / "kern" / "s.py", "two\n", "three\n")
    if committed:
        git(repository / "kern", "commit", "-qam", "edit")
        git(repository, "commit", "-qam", "bump")
    revision = "HEAD~1" if committed else "HEAD"
    assert changes(repository, revision, "kern/s.py") == {"kern/s.py": (range(2, 3),)}
    assert changes(repository, "base", "kern/s.py") == {"kern/s.py": WHOLE}


def test_files_that_git_does_not_keep_are_named(repository: Path, tmp_path: Path) -> None:
    (repository / "generated.py").write_text("x\n")
    (repository / "new.py").write_text("x\n")
    outside = str(tmp_path.parent / "k.py")
    paths = [*(str(repository / name) for name in ("k.py", "new.py", "generated.py")), outside]
    assert beyond_git(repository, paths) == [paths[2], outside]


def test_git_is_asked_from_a_folder_below_and_about_files_elsewhere(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("site-packages") / "k.py"
    outside.write_text("x\n")
    edit(repository / "k.py", "line 1\n", "line one\n")
    paths = [str(repository / "k.py"), str(outside)]
    found = changed_lines("base", repository / "sub", paths)
    assert found == {paths[0]: (range(1, 2),)}


def test_asking_changes_nothing(repository: Path) -> None:
    # Newer than the index says, though its text is the same: git would note that there.
    os.utime(repository / "k.py", (2e9, 2e9))
    index = (repository / ".git" / "index").read_bytes()
    changes(repository)
    assert (repository / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize("revision", ["nowhere", "--all", "base:k.py", ""])
def test_an_unknown_revision_is_a_usage_error_with_a_way_out(
    repository: Path, revision: str
) -> None:
    with pytest.raises(UsageError, match="git fetch"):
        changes(repository, revision)


def test_a_history_without_a_common_commit_is_a_usage_error(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-qm", "unrelated")
    with pytest.raises(UsageError, match="fetch-depth"):
        changes(repository, "main")


def test_a_folder_outside_any_repository_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in no git repository"):
        changed_lines("HEAD", tmp_path, [])


# Mutants in the diff.


def planned(repository: Path, name: str, file: str, *lines: int) -> PlannedSubject:
    """A subject whose mutants are reported at, and edit, one line each."""
    path = str(repository / file)
    text = (repository / file).read_text()
    starts = [0, *(i + 1 for i, letter in enumerate(text) if letter == "\n")]
    mutants = tuple(
        mutant(
            f"{name}/k/drop-load-mask/{line}-aaaaaa",
            path=path,
            line=line,
            edits=(Edit(starts[line - 1], starts[line - 1] + 4, "LINE"),),
        )
        for line in lines
    )
    kernels = (Kernel("k", "k", path, 1),)
    return PlannedSubject(
        subject_run(name, mutants=mutants, kernels=kernels), {path: text}, (), 1.0
    )


def kept(found: tuple[PlannedSubject, ...]) -> list[str]:
    return [m.id.partition("/k/")[0] + f":{m.line}" for s in found for m in s.run.mutants]


def test_only_mutants_on_changed_lines_are_kept(repository: Path) -> None:
    edit(repository / "k.py", "line 4\n", "line four\n")
    subjects = [planned(repository, "a", "k.py", 3, 4, 5), planned(repository, "b", "sub/m.py", 4)]
    found, selection = select(plan(root=repository, since="base"), subjects)
    assert kept(found) == ["a:4"]
    assert (selection.since, selection.note) == ("base", "")


def test_a_mutant_with_one_of_two_edits_on_a_changed_line_is_kept(repository: Path) -> None:
    edit(repository / "k.py", "line 4\n", "line four\n")
    one = planned(repository, "a", "k.py", 8, 4)
    far, near = one.run.mutants
    both = subject_run(
        "a", mutants=(mutant(far.id, path=far.path, line=8, edits=(*far.edits, *near.edits)),)
    )
    found, _ = select(plan(root=repository, since="base"), [replace(one, run=both)])
    assert kept(found) == ["a:8"]


def test_a_diff_without_kernels_is_told_from_one_where_nothing_can_be_planted(
    repository: Path,
) -> None:
    subjects = [planned(repository, "a", "k.py", 4)]
    found, selection = select(plan(root=repository, since="base"), subjects)
    assert (found, selection.note[:7]) == ((), "no file")
    edit(repository / "k.py", "line 9\n", "line nine\n")
    found, selection = select(plan(root=repository, since="base"), subjects)
    assert found == ()
    assert selection.note.startswith("k.py changed since base, but no operator")


def test_tests_that_changed_or_went_are_named_since_no_mutant_is_judged_for_them(
    repository: Path,
) -> None:
    (repository / "tests").mkdir()
    for name in ("test_a.py", "test_b.py", "test_c.py", "helper.py"):
        (repository / "tests" / name).write_text("def test_it():\n    assert 1 == 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "tests")
    edit(repository / "tests" / "test_a.py", "assert 1 == 1", "assert 1")
    (repository / "tests" / "test_b.py").unlink()
    (repository / "tests" / "helper.py").unlink()
    gates = gate_refs(("tests",), {"tests": GateConfig("pytest", args=("tests",))}, "")
    asked = plan(root=repository, since="HEAD", gates=gates)
    _, selection = select(asked, [planned(repository, "a", "k.py", 4)])
    assert selection.tests_changed == ("tests/test_a.py", "tests/test_b.py")
    certificate = certify(run(selection=selection))
    assert certificate.selection.tests_changed == selection.tests_changed
    assert any("test_a.py, tests/test_b.py let through" in s for s in certificate.not_tested)


def test_a_subject_that_could_not_be_run_is_no_unchanged_one(repository: Path) -> None:
    broken = PlannedSubject(subject_run("b", kernels=(), failed="no module"), {}, (), 1.0)
    subjects = [planned(repository, "a", "k.py", 4), broken]
    found, _ = select(plan(root=repository, since="base"), subjects)
    assert [s.run.subject.name for s in found] == ["b"]


def test_only_and_a_diff_are_both_kept_to(repository: Path) -> None:
    edit(repository / "k.py", "line 4\nline 5\n", "4\n5\n")
    subjects = [planned(repository, "a", "k.py", 4, 5, 6)]
    wanted = ("a/k/drop-load-mask/5-aaaaaa", "a/k/drop-load-mask/6-aaaaaa")
    found, selection = select(plan(root=repository, since="base", only=wanted), subjects)
    assert selection.only == 2
    assert kept(found) == ["a:5"]


def test_an_id_that_names_nothing_is_a_usage_error(repository: Path) -> None:
    with pytest.raises(UsageError, match="no mutant 'x'"):
        select(plan(only=("x",)), [planned(repository, "a", "k.py", 4)])


def test_nothing_planted_at_all_is_no_empty_diff(repository: Path) -> None:
    with pytest.raises(NothingScored):
        select(plan(root=repository, since="base"), [planned(repository, "a", "k.py")])


def test_only_takes_globs_and_counts_what_they_name() -> None:
    ids = [f"softmax/k/{name}/1-aaaaaa" for name in ("drop-mask", "wrong-a", "wrong-b")]
    part = subject_run(mutants=tuple(map(mutant, ids)))
    plan = Plan(Path(), (part.subject,), (), (), only=("softmax/*/wrong-*",))
    planned, selection = select(plan, [PlannedSubject(part, {}, (), 0.0)])
    assert [m.id for subject in planned for m in subject.run.mutants] == ids[1:]
    assert selection.only == 2


def test_originals_are_the_tasks_that_need_no_compiled_code() -> None:
    part = subject_run()
    refs = gate_refs(("oracle",), {}, ".")
    plan = Plan(Path(), (part.subject,), refs, ())
    ((subject, tasks),) = originals_of(plan, [PlannedSubject(part, {}, (), 0.0)])
    assert subject.run is part
    assert tasks == [Task(original("softmax"), "oracle", stop_at_first=False)]


def test_a_gate_on_a_gpu_judges_what_the_interpreter_cannot_show(tmp_path: Path) -> None:
    source = {"source_sha256": text_sha256("")}
    device = mutant("softmax/k/race/1-cccccc", observable_by=(ObservableBy.DEVICE,), **source)
    usual, never = (
        mutant("softmax/k/x/1-aaaaaa", **source),
        mutant("softmax/k/x/2-aaaaaa", observable_by=(), **source),
    )
    ((subject, _),) = work_of(("softmax", [usual, device, never]))
    subject = replace(subject, texts={usual.path: ""})
    tables = {
        "tests": GateConfig("pytest"),
        "gpu": GateConfig("pytest", lane="cuda"),
    }
    asked = plan(gates=gate_refs(("tests", "gpu"), tables, str(tmp_path)))
    assert settled(asked, [subject], {}) == {never.id}
    ((_, tasks),) = plan_tasks(asked, [subject], {"softmax": {}})
    judged = {(task.gate, task.candidate.id) for task in tasks if "/k/" in task.candidate.id}
    assert judged == {("tests", usual.id), ("gpu", usual.id), ("gpu", device.id)}
