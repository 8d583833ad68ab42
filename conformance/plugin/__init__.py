"""The pytest plugin: options, the fixture ``ue``, and one judged result per case.

Here and in ``conformance.cli`` the rooms are put together.  ``target`` says which kernel
is judged and builds it, ``guests`` boots it, ``running`` runs cases in a process of their
own guest, ``controller`` records what they show.  Tests that are not cases are left alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.abi.profiles import ProfileError
from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectations
from conformance.options import declare
from conformance.plugin.controller import INPUT, NAME, Controller, refuse, results_directory
from conformance.plugin.running import NoExpression, Running, case_of, expression
from conformance.plugin.target import KERNELS, Target, resolve
from conformance.plugin.worker import Worker
from conformance.report.errors import ReportError
from conformance.report.exits import Ending
from conformance.sut.user_events import UserEvents
from kernels.errors import BuildFailed, KernelsError, UserMistake
from vm.errors import VmError

_WORKER = pytest.StashKey[Worker]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a conformance run; `uevt run` passes its own through."""
    group = parser.getgroup("uevt", "conformance of the user_events ABI")
    add = group.addoption
    add("--kernel", metavar="K", help="a kernel of the catalog (6.12), or `model` (self-check)")
    declare(add)


def pytest_configure(config: pytest.Config) -> None:
    """Build the kernel, prove the accelerator, claim the directory: once, up front."""
    config.addinivalue_line("markers", "uevt_full: a variant of tier full in a quick case")
    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    option = config.option
    if INPUT in worker_input:
        told = json.loads(worker_input[INPUT])
        directory = Path(told["directory"]) / worker_input["workerid"]
        _judge_here(config, Target.from_json(told["target"]), directory)
    elif any(getattr(option, name) is not None for name in KERNELS):
        controller = _controller(config)
        config.pluginmanager.register(controller, NAME)
        _judge_here(config, controller.target, controller.directory)


def _controller(config: pytest.Config) -> Controller:
    """Ends the session with a contracted exit code when the run cannot begin."""
    option = config.option
    try:
        expression(option.keyword)
        Expectations.load()
        target = resolve(option)
        return Controller(config, target, results_directory(config, target))
    except (NoExpression, ProfileError, UserMistake, ReportError, ExpectationError) as error:
        refuse(config, _told(error))
    except BuildFailed as error:
        refuse(config, _told(error), Ending.BUILD_FAILED)
    except (KernelsError, VmError, OSError) as error:
        refuse(config, _told(error), Ending.HOST)


def _judge_here(config: pytest.Config, target: Target, directory: Path) -> None:
    worker = Worker(target, directory, Expectations.load())
    config.stash[_WORKER] = worker
    config.pluginmanager.register(Running(worker, target), "uevt-running")


def _told(error: Exception) -> str:
    """One line: what was wrong, and the mend."""
    mend = getattr(error, "mend", "")
    return f"{error}" + (f"; {mend}" if mend and mend not in str(error) else "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse cases without a kernel: there is nothing they could be run on."""
    if _WORKER not in config.stash and any(case_of(item) is not None for item in items):
        refuse(config, "cases need a kernel: add --kernel 6.12, --kernel model or --image FILE")


@pytest.fixture
def ue(request: pytest.FixtureRequest) -> UserEvents:
    """user_events of the kernel under test, in lock step with the model."""
    return request.config.stash[_WORKER].begin()
