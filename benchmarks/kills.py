"""Kill a campaign with SIGKILL at random moments, resume it, and hold the end against no kill.

Rounds: a campaign in a new folder is killed once or more and then resumed to its end. A kill's
moment is a stage (before any, each stage that the run tells of, after its last verdict; half of
them while it judges) and a random time after it began, up to how long it lasted unbroken. One
kill hits the process group alone, the next one every process of the run at once, children first,
as a container's end does.

The gate is the oracle, under which uninitialised memory holds the same bits in every run.

After each kill: no process of the run is left. At a round's end: the certificate is the unbroken
run's (timings aside), every verdict that was there at a kill is still there and was not judged
again, none is there twice, no temporary file is left. Rounds are written as they end to
benchmarks/data/kills.json, and the same command goes on after the last one.

    python benchmarks/kills.py [--kills 50] [--seed 0] [--jobs 2]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "data" / "kills.json"
CAMPAIGN = (
    *("--subject", "leaky_relu", "--quick", "--gate", "oracle"),
    *("--operator", "drop-load-mask", "--operator", "drop-store-mask"),
    *("--operator", "dropped-int64", "--operator", "index-off-by-one"),
)
MARK = "GATECERT_KILLS_MARK"
BEFORE = "before any stage"
VERDICTS_IN = "after the last verdict"
STAGES = (
    BEFORE,
    "probe and plant",
    "compile and compare code",
    "judge",
    "compare survivors' machine code",
    VERDICTS_IN,
)
_JUDGE_WEIGHT = len(STAGES) - 1
"""Half of the kills fall while verdicts are written."""
_LIMIT_S = 1800.0
_MOST_PER_ROUND = 4
_WRITING_S = 1.0
"""About how long reports are written."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: when, of whom, and what was in the store then and at the round's end."""

    round: int
    stage: str
    after_s: float
    whom: str
    verdicts_then: int
    verdicts_before: int
    verdicts_after: int = 0
    lost: int = 0
    doubled: int = 0
    processes_left: int = 0
    files_left: int = 0
    same_certificate: bool = False


@dataclass(slots=True)
class Session:
    """A running command with what it has told of its stages, and when."""

    process: subprocess.Popen[str]
    mark: str
    began: dict[str, float] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Read its progress until it ends."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            stage = line.removeprefix("gatecert: ").rpartition(": ")[0]
            if stage in STAGES:
                self.began.setdefault(stage, time.monotonic())


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and what is run."""

    scratch: Path
    arguments: tuple[str, ...] = CAMPAIGN
    jobs: int = 2

    def command(self, out: Path) -> list[str]:
        """The campaign with its results in `out`."""
        gatecert = [sys.executable, "-m", "gatecert", "certify"]
        return [*gatecert, *self.arguments, "--jobs", str(self.jobs), "--out", str(out)]

    @property
    def temporary(self) -> Path:
        """Where the campaigns' temporary files go; empty after each round."""
        return self.scratch / "tmp"

    @contextlib.contextmanager
    def session(self, out: Path) -> Iterator[Session]:
        """Start the campaign; whatever is left of it is gone at the end."""
        self.temporary.mkdir(exist_ok=True)
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        environment = {**os.environ, MARK: mark, "TMPDIR": str(self.temporary)}
        known = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([known] if known else [])])
        process = subprocess.Popen(
            self.command(out),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.scratch,
        )
        session = Session(process, mark, {BEFORE: time.monotonic()})
        listener = threading.Thread(target=session.listen)
        listener.start()
        try:
            yield session
        finally:
            _kill(_processes(mark))
            process.wait()
            listener.join()


def unbroken(bench: Bench, out: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """The certificate of a run that nobody kills, and how long each of its stages took."""
    with bench.session(out) as session:
        while session.process.poll() is None:
            if _all_verdicts_are_in(out):
                session.began.setdefault(VERDICTS_IN, time.monotonic())
            time.sleep(0.02)
        ended = time.monotonic()
        if session.process.returncode != 0:
            sys.exit(f"the unbroken run failed:\n{''.join(session.said)}")
    tail = ended - session.began.pop(VERDICTS_IN, ended)
    named = sorted(session.began, key=lambda stage: session.began[stage])
    starts = [*(session.began[stage] for stage in named), ended]
    lengths = {s: b - a for s, a, b in zip(named, starts, starts[1:], strict=False)}
    return certificate(out), {**lengths, VERDICTS_IN: tail}


def run_round(
    bench: Bench,
    number: int,
    draw: random.Random,
    wanted: dict[str, Any],
    lengths: dict[str, float],
    most: int,
    stages: Sequence[str] = STAGES,
) -> list[Kill]:
    """Kill a new campaign up to `most` times, let it end, and look at what it left."""
    out = bench.scratch / f"round-{number}"
    kills: list[Kill] = []
    seen: list[dict[str, int]] = []
    ended = False
    while len(kills) < most and not ended:
        to_come = _to_come(out)
        open_to_it = [stage for stage in stages if stage in to_come] or stages
        weights = [_JUDGE_WEIGHT if stage == "judge" else 1 for stage in open_to_it]
        (stage,) = draw.choices(open_to_it, weights)
        after_s = draw.uniform(0.0, min(lengths.get(stage, 1.0), to_come.get(stage, 1.0)))
        whom = ("process group", "every process")[len(kills) % 2 ^ number % 2]
        before = len(verdicts(out))
        with bench.session(out) as session:
            ended = not _reach(session, stage, out, after_s)
            if ended:
                _expect_success(session)
                continue
            if whom == "process group":
                os.killpg(session.process.pid, signal.SIGKILL)
            else:
                _kill(_processes(session.mark))
            session.process.wait()
            left = _wait_until_gone(session.mark)
        table = verdicts(out)
        seen.append(table)
        kills.append(
            Kill(number, stage, round(after_s, 3), whom, len(table), before, processes_left=left)
        )
        if draw.random() < 0.2:
            break
    if not ended:
        with bench.session(out) as session:
            session.process.wait(_LIMIT_S)
            _expect_success(session)
    final = verdicts(out)
    doubled = _doubled(out)
    files = sum(1 for _ in bench.temporary.iterdir()) + _unexpected(out)
    same = certificate(out) == wanted
    if not same:
        differ = sorted(key for key in wanted if certificate(out).get(key) != wanted[key])
        kept = Path(tempfile.mkdtemp(prefix="gatecert-kills-evidence-"))
        print(f"round {number}: {', '.join(differ)} differ; see {kept}", file=sys.stderr)
        shutil.copytree(out, kept, dirs_exist_ok=True)
    shutil.rmtree(out)
    return [
        Kill(
            **{
                **asdict(kill),
                "verdicts_after": len(final),
                "lost": sum(final.get(key) != row for key, row in table.items()),
                "doubled": doubled,
                "files_left": files,
                "same_certificate": same,
            }
        )
        for kill, table in zip(kills, seen, strict=True)
    ]


def _expect_success(session: Session) -> None:
    if session.process.returncode != 0:
        said = "".join(session.said)
        print(f"ended with {session.process.returncode}:\n{said}", file=sys.stderr, flush=True)


def certificate(out: Path) -> dict[str, Any]:
    """The certificate that a round ended with, without what clocks say."""
    paths = sorted(out.glob("certificate*.json"), key=lambda path: path.stat().st_mtime_ns)
    if not paths:
        return {}
    found: dict[str, Any] = json.loads(paths[-1].read_text(encoding="utf-8"))
    del found["timings_s"]
    return found


def verdicts(out: Path) -> dict[str, int]:
    """Row by key of every verdict that lasts."""
    return dict(_query(out, "SELECT key, min(id) FROM verdict WHERE lasting GROUP BY key"))


def _to_come(out: Path) -> dict[str, float]:
    """Stages that the next session will have, and for how many seconds at most: what is in the
    store is not done again."""
    limits = dict.fromkeys(STAGES, math.inf)
    [(comparisons,)] = _query(out, "SELECT count(*) FROM comparison") or [(0,)]
    if comparisons > 0:
        del limits["compile and compare code"]
    if _all_verdicts_are_in(out):
        del limits["judge"]
    if comparisons > 1:
        del limits["compare survivors' machine code"]
        limits[VERDICTS_IN] = _WRITING_S
    return limits


def _doubled(out: Path) -> int:
    counts = "SELECT count(*), count(DISTINCT key) FROM verdict WHERE lasting"
    [(rows, keys)] = _query(out, counts) or [(0, 0)]
    return int(rows - keys)


def _all_verdicts_are_in(out: Path) -> bool:
    rows = _query(
        out,
        "SELECT task_count, (SELECT count(*) FROM run_verdict WHERE run = id) FROM run "
        "ORDER BY id DESC LIMIT 1",
    )
    return bool(rows) and rows[0][0] > 0 and rows[0][0] == rows[0][1]


def _query(out: Path, statement: str) -> list[tuple[Any, ...]]:
    path = out / "gatecert.sqlite"
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=10.0)) as database:
            return database.execute(statement).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise


def _reach(session: Session, stage: str, out: Path, after_s: float) -> bool:
    """Wait for the moment; False where the run ended before it."""
    deadline = time.monotonic() + _LIMIT_S
    while stage not in session.began:
        if session.process.poll() is not None:
            return False
        if stage == VERDICTS_IN and "judge" in session.began and _all_verdicts_are_in(out):
            session.began[stage] = time.monotonic()
        if time.monotonic() > deadline:
            sys.exit(f"no end within {_LIMIT_S:.0f} s:\n{''.join(session.said)}")
        time.sleep(0.01)
    time.sleep(max(0.0, session.began[stage] + after_s - time.monotonic()))
    return session.process.poll() is None


def _processes(mark: str) -> list[int]:
    """Processes, zombies aside, that inherited the mark; the latest first."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return sorted(found, reverse=True)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait_until_gone(mark: str, limit_s: float = 20.0) -> int:
    deadline = time.monotonic() + limit_s
    while (left := len(_processes(mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _unexpected(out: Path) -> int:
    """Files beside results and store, and parts of files among the known codes."""
    known = {"gatecert.sqlite", ".gatecert.lock", ".gitignore", "codes"}
    ours = ("certificate", "report")
    beside = [p for p in out.iterdir() if p.name not in known and not p.name.startswith(ours)]
    return len(beside) + sum(1 for _ in (out / "codes").glob("*/*.*"))


def main() -> None:
    """Kill until there are enough kills, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    known = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    kills = [Kill(**one) for one in known.get("kills", []) if known.get("seed") == asked.seed]
    with tempfile.TemporaryDirectory(prefix="gatecert-kills-") as scratch:
        bench = Bench(Path(scratch), jobs=asked.jobs)
        wanted, lengths = unbroken(bench, Path(scratch) / "unbroken")
        print(f"unbroken: {json.dumps({k: round(v, 2) for k, v in lengths.items()})}", flush=True)
        number = kills[-1].round + 1 if kills else 0
        while len(kills) < asked.kills:
            draw = random.Random(f"{asked.seed}/{number}")
            most = min(_MOST_PER_ROUND, asked.kills - len(kills))
            done = run_round(bench, number, draw, wanted, lengths, most)
            kills += done
            for kill in done:
                print(json.dumps(asdict(kill)), flush=True)
            OUTPUT.parent.mkdir(parents=True, exist_ok=True)
            OUTPUT.write_text(json.dumps(report(kills, asked.seed, lengths), indent=2) + "\n")
            number += 1
    print(json.dumps(report(kills, asked.seed, lengths)["all"], indent=2))
    if not all(_is_well(kill) for kill in kills):
        sys.exit("a kill was not survived")


def report(kills: Sequence[Kill], seed: int, lengths: dict[str, float]) -> dict[str, Any]:
    """All kills and their sums."""
    return {
        "seed": seed,
        "campaign": " ".join(CAMPAIGN),
        "unbroken_s": {stage: round(seconds, 2) for stage, seconds in lengths.items()},
        "all": {
            "kills": len(kills),
            "rounds": len({kill.round for kill in kills}),
            "by_stage": {s: sum(kill.stage == s for kill in kills) for s in STAGES},
            "same_certificate": sum(kill.same_certificate for kill in kills),
            "verdicts_lost": sum(kill.lost for kill in kills),
            "verdicts_doubled": sum(kill.doubled for kill in kills),
            "processes_left": sum(kill.processes_left for kill in kills),
            "files_left": sum(kill.files_left for kill in kills),
        },
        "kills": [asdict(kill) for kill in kills],
    }


def _is_well(kill: Kill) -> bool:
    bad = kill.lost or kill.doubled or kill.processes_left or kill.files_left
    return kill.same_certificate and not bad


if __name__ == "__main__":
    main()
