"""Keep the exit code that a session decides on: pytest's own codes mean something else."""

from __future__ import annotations

import gc

import pytest


class ExitCodeObserver:
    """Plugin that keeps the exit code of a run that ended with a verdict, or must not begin.

    It also enables garbage collection once cases are collected.
    """

    code: int | None = None

    def pytest_collection_finish(self) -> None:
        """Exempt everything up to now from garbage collection, here and in forked workers."""
        gc.freeze()
        gc.enable()


def observe(config: pytest.Config, code: int) -> int:
    """Give the observers of a session its exit code, and return it."""
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, ExitCodeObserver):
            plugin.code = code
    return code
