"""The pytest plugin: options, the fixture ``ue``, and one judged result per case.

Here and in ``conformance.cli`` the rooms are put together.  ``target`` says which kernel
is judged and builds it, ``guests`` boots it, ``running`` runs cases in a process of their
own guest, ``controller`` records what they show.  Tests that are not cases are left alone.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conformance.abi.profiles import ProfileError
from conformance.expectations.allow import Allowed
from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectations
from conformance.options import asked, declare, open_ktap, settle
from conformance.plugin.controller import INPUT, NAME, Controller, refuse, results_directory
from conformance.plugin.limits import RunLimit
from conformance.plugin.open_files import require_files
from conformance.plugin.order import Earlier
from conformance.plugin.running import NoExpression, Running, case_of, expression
from conformance.plugin.target import KERNELS, Target, resolve
from conformance.plugin.tidying import tidy
from conformance.plugin.trial import try_image
from conformance.plugin.worker import Worker
from conformance.report.errors import ReportError
from conformance.report.exits import Ending, ExitStyle, exit_code
from conformance.resuming import recall
from conformance.sut.user_events import UserEvents
from kernels.errors import KernelsError, KernelTrouble, UserMistake
from vm.errors import VmError
from vm.leash import tie

_RUNNING = "uevt-running"
_WORKER = pytest.StashKey[Worker]()
_CONTROLLER = pytest.StashKey[Controller]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a conformance run; `uevt run` passes its own through."""
    group = parser.getgroup("uevt", "conformance of the user_events ABI")
    add = group.addoption
    add("--kernel", metavar="K", help="a kernel of the catalog (6.12), or `model` (self-check)")
    declare(add)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Build the kernel, prove the accelerator, claim the directory: once, up front.

    A run that cannot begin ends here with a contracted exit code, before any session.
    """
    option = config.option
    if hasattr(config, "workerinput"):
        return None
    named = (*KERNELS, "resume")
    if all(getattr(option, name) is None for name in named):
        settle(option)
        return None
    try:
        if option.resume is not None:
            recall(option)
        settle(option)
        controller = _controller(config)
        if controller.complete:
            return controller.conclude()
        config.stash[_CONTROLLER] = controller
    except (NoExpression, ProfileError, UserMistake, ReportError, ExpectationError) as error:
        return _unable(config, error, Ending.USAGE)
    except KernelTrouble as error:
        return _unable(config, error, Ending.BUILD_FAILED)
    except (KernelsError, VmError, OSError) as error:
        return _unable(config, error, Ending.HOST)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, ExitStyle(option.exit_style or "default"))
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Let this process run cases, or be told what those of xdist show."""
    config.addinivalue_line("markers", "uevt_full: a variant of tier full in a quick case")
    config.addinivalue_line("markers", "uevt_variants(names, rows): the variants of a case")
    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    if INPUT in worker_input:
        told = json.loads(worker_input[INPUT])
        settle(config.option)
        # Who is told of what we find out is gone when the controller is.
        tie(told["controller"])
        directory = Path(told["directory"]) / worker_input["workerid"]
        limit = None if told["limit"] is None else RunLimit(**told["limit"])
        target = Target.from_json(told["target"])
        _judge_here(config, target, directory, Earlier(**told["earlier"]), limit)
    elif _CONTROLLER in config.stash:
        controller = config.stash[_CONTROLLER]
        config.pluginmanager.register(controller, NAME)
        directory, earlier = controller.directory, controller.earlier
        _judge_here(config, controller.target, directory, earlier, controller.limit)


def _controller(config: pytest.Config) -> Controller:
    if not __debug__:
        why = "Python was told to leave out assertions, which are what a case states"
        raise UserMistake(why, "unset PYTHONOPTIMIZE, and leave out -O")
    for name in (NAME, _RUNNING):
        if config.pluginmanager.is_blocked(name):
            raise UserMistake(f"nothing is judged without {name}", f"leave out -p no:{name}")
    expression(config.option.keyword)
    Expectations.load()
    _allowed()
    require_files()
    ktap = open_ktap(config.option.ktap)
    tidy()
    target = resolve(config.option)
    try_image(target)
    words = asked(config.option)
    return Controller(config, target, results_directory(config, target), ktap, words)


def _allowed() -> Allowed:
    """The rules that hold today.  Raises ExpectationError, for one that has expired too."""
    return Allowed.load(datetime.now(UTC).date())


def _unable(config: pytest.Config, error: Exception, ending: Ending) -> int:
    sys.stderr.write(f"uevt: {_told(error)}\n")
    return exit_code(ending, ExitStyle(config.option.exit_style or "default"))


def _judge_here(
    config: pytest.Config,
    target: Target,
    directory: Path,
    earlier: Earlier,
    limit: RunLimit | None,
) -> None:
    anew = config.option.isolation == "case"
    worker = Worker(
        target, directory, Expectations.load(), allowed=_allowed(), anew=anew, limit=limit
    )
    config.stash[_WORKER] = worker
    config.pluginmanager.register(Running(worker, target, earlier), _RUNNING)


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
