"""End a session that has no case to run, or must not run its cases."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.session.exit_code_observer import observe

#: The name the controller plugin is registered by.
CONTROLLER = "uevt-controller"


def refuse(config: pytest.Config, why: str, ending: Ending = Ending.USAGE) -> NoReturn:
    """End a session before its first case with one line and an exit code."""
    controller = config.pluginmanager.get_plugin(CONTROLLER)
    if controller is not None:
        controller.abandon(why if ending is Ending.NOT_APPLICABLE else "")
    if config.pluginmanager.is_blocked("terminalreporter"):
        # Nothing else prints the reason then.
        sys.stderr.write(f"uevt: {why}\n")
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
