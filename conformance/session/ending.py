"""End a session with an exit code of ours: pytest's own codes mean something else."""

from __future__ import annotations

import gc
from typing import NoReturn

import pytest

from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from host.text import complain

#: The name the controller plugin is registered by.
CONTROLLER = "uevt-controller"


class ExitCodeObserver:
    """Plugin that keeps the exit code of a run that ended with a verdict, or must not begin.

    It also enables garbage collection once cases are collected.
    """

    code: int | None = None
    interrupted = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note a Ctrl-C, also of a session without a controller yet."""
        self.interrupted = type(excinfo.value) is KeyboardInterrupt

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


def refuse(config: pytest.Config, why: str, ending: Ending = Ending.USAGE) -> NoReturn:
    """End a session before its first case with one line and an exit code."""
    controller = config.pluginmanager.get_plugin(CONTROLLER)
    if controller is not None:
        controller.abandon(why if ending is Ending.NOT_APPLICABLE else "")
    if config.pluginmanager.is_blocked("terminalreporter"):
        # Nothing else prints the reason then.
        complain(why)
    code = observe(config, exit_code(ending, ExitStyle(config.option.exit_style)))
    pytest.exit(f"uevt: {why}", code)


def nothing_selected(config: pytest.Config, profile: str) -> str:
    """Why a run with a profile has no case, and a hint."""
    option = config.option
    controller = config.pluginmanager.get_plugin(CONTROLLER)
    if controller is not None and controller.unloadable:
        return f"no case left: cannot load {', '.join(controller.unloadable)}"
    if option.frozen is not None:
        return f"nothing selected: {option.frozen} has no case of tier {option.tier} and " + (
            f"profile {profile} that matches -k {option.keyword!r}"
        )
    hint = "-k matches parts of case ids"
    if option.tier != "full":
        hint += "; most cases need --tier full"
    return (
        f"nothing selected: no case matches -k {option.keyword!r}, tier {option.tier} and profile "
        f"{profile}; {hint}"
    )
