"""What a profile makes of a command's configuration, seed and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gatecert.errors import UsageError

if TYPE_CHECKING:
    from gatecert.certificate import Certificate
    from gatecert.config import Config
    from gatecert.subjects import Subject


class Profiled(NamedTuple):
    """A command under its profiles; `earlier` is what the run is held against."""

    config: Config
    seed: int
    quick: bool
    earlier: Certificate | None


def apply_profile(
    config: Config,
    profile: str | None,
    against: Path | None,
    seed: int,
    quick: bool,
    subject_names: Sequence[str] = (),
    *,
    some_controls: bool = False,
) -> Profiled:
    """Put every subject under the named profile, or leave the configuration's own in force.

    A run that is held against an earlier one takes its seed and its inputs; `some_controls` says
    that it does not run all controls.

    Raises:
        UsageError: no such profile, it needs what is not given, or seeds contradict.
    """
    from gatecert.config import with_profile
    from gatecert.profiles import get_profile

    if profile is not None:
        chosen = get_profile(profile)

        def under(subject: Subject) -> Subject:
            asked = not subject_names or subject.name in subject_names
            return with_profile(subject, chosen) if asked else subject

        config = _with_subjects(config, [under(subject) for subject in config.subjects])
    for subject in config.subjects:
        asked = not subject_names or subject.name in subject_names
        if subject.profile.needs_earlier and against is None and asked:
            raise UsageError(
                f"profile {subject.profile.name!r} of subject {subject.name!r} compares with an "
                "earlier run: name its certificate with --against"
            )
    if against is None:
        return Profiled(config, seed, quick, None)
    from gatecert.cli.certificates import read_earlier

    if some_controls:
        raise UsageError("--against compares all controls; leave --only and --shard out")
    earlier = read_earlier(against)
    if seed not in (0, earlier.seed):
        raise UsageError(
            f"--seed {seed} and --against a run of seed {earlier.seed}: other inputs cannot be "
            "compared; leave --seed out"
        )
    if quick and not earlier.quick:
        raise UsageError(
            "--quick and --against a run without it: other inputs cannot be compared; leave "
            "--quick out"
        )
    return Profiled(config, earlier.seed, earlier.quick, earlier)


def _with_subjects(config: Config, subjects: Sequence[Subject]) -> Config:
    import msgspec

    return msgspec.structs.replace(config, subjects=tuple(subjects))
