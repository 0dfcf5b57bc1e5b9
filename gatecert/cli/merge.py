"""`gatecert merge`: the shards of a run become one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.cli.publishing import Publishing


@click.command("merge", short_help="Merge the shards of one plan into one run.")
@click.argument(
    "paths", metavar="STORE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@options.config_option
@options.json_option
@options.jobs_option
@options.out_option
@options.publishing_options
def command(
    paths: Sequence[Path],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    out: Path,
    publishing: Publishing,
) -> int:
    """Merge the shards of one plan into the run that one machine would have made.

    Each STORE is a gatecert.sqlite or its folder. Shards must be finished, complete and of one
    plan, and nothing in them may contradict another. The result goes to --out as certify writes
    it; the configuration is read for [require] alone.
    """
    from gatecert.campaign.merge import gather, merge
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.results import conclude
    from gatecert.cli.setup import check_out, read_config, say
    from gatecert.config import Require
    from gatecert.store import recording

    ratchet = publishing.check()
    check_out(out)
    merged = gather(paths)
    require = Require() if merged.scope.only else read_config(config_path).require
    if merged.scope.in_diff:
        require = Require(adversaries=require.adversaries)
    say(f"merging {merged.first.shard.count} shards: {len(merged.verdicts)} verdicts")
    with recording(out, merged.scope) as record:
        with shown_progress() as progress:
            run = merge(merged, record, jobs, progress)
        return conclude(
            run,
            record,
            merged.scope,
            require,
            as_json,
            publishing=publishing,
            ratchet=ratchet,
        )
