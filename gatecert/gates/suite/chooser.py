"""A pytest plugin that runs the chosen tests in their order, and nothing that chance decides.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.suite.selection import Choice
from gatecert.sandbox.private_tree import users_path


class Chooser:
    """Runs the tests of a choice, or all of them in pytest's order."""

    def __init__(self, choice: Choice | None, seed: int) -> None:
        self._choice = choice
        self._seed = seed

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Keep tests in this process, where workers of pytest-xdist would not see the overlay;
        let nothing but a positive verdict end the session; leave nothing to chance that
        pytest-randomly or Hypothesis would, or two runs of one command could differ."""
        if config.pluginmanager.hasplugin("xdist"):
            config.option.dist = "no"
            config.option.tx = []
        if config.pluginmanager.hasplugin("randomly"):
            config.option.randomly_reorganize = False
            if config.option.randomly_seed == "default":
                config.option.randomly_seed = self._seed
        if getattr(config.option, "hypothesis_seed", 0) is None:
            config.option.hypothesis_seed = str(self._seed)
        config.option.maxfail = 0

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Let pytest-cov demand nothing: a part of the tests cannot cover all of the code."""
        coverage = config.pluginmanager.get_plugin("_cov")
        if coverage is not None:
            config.pluginmanager.unregister(coverage)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self) -> bool:
        """Set no timer of pytest-timeout: on a busy machine it would make a failure of slowness."""
        return True

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Do not import files without a test that will run."""
        if self._choice is None or not self._choice.idle_files:
            return None
        idle = {config.rootpath / file for file in self._choice.idle_files}
        return True if collection_path in idle else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what was not chosen, and put the rest in order. First of all such hooks, so
        that pytest still groups tests by parametrised fixtures and the team's own hooks hold."""
        if self._choice is None:
            return
        rank = {nodeid: number for number, nodeid in enumerate(self._choice.nodeids)}
        names = {item: users_path(item.nodeid) for item in items}
        chosen = [item for item in items if names[item] in rank]
        chosen.sort(key=lambda item: rank[names[item]])
        rest = [item for item in items if names[item] not in rank]
        if rest and not self._choice.others:
            config.hook.pytest_deselected(items=rest)
            rest = []
        items[:] = chosen + rest
