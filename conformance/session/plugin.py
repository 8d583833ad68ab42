"""The pytest plugin: options, the fixture ``ue``, and one judged result per case.

``target`` names and builds the kernel under test, ``worker`` boots it and runs cases, ``selection``
chooses the cases, ``pool`` forks the workers, ``controller`` records the results.  Tests that are
no cases are left alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from conformance.abi.profile import ProfileError
from conformance.allowed_reports.rules import Allowed, RuleError
from conformance.client.user_events import UserEvents
from conformance.report.export.ktap_stream import write_skipped
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.session.controller.controller import Controller
from conformance.session.controller.resume import recall_options
from conformance.session.controller.run_directory import check_directory, results_directory
from conformance.session.ending import CONTROLLER, observe, refuse
from conformance.session.here.errors import Refused
from conformance.session.here.system import BorrowedSystem
from conformance.session.options import apply_defaults, command_words, declare, open_ktap
from conformance.session.ordering import CaseHistory
from conformance.session.pool.pool import NAME as POOL
from conformance.session.pool.pool import WorkerPool
from conformance.session.pool.prelaunch import Prelaunch
from conformance.session.preflight.host import require_open_files, tidy
from conformance.session.selection import (
    CaseSelection,
    case_of,
    expression,
    named_ids,
)
from conformance.session.target.target import KERNELS, Target, check, resolve
from conformance.session.worker.case_hooks import CaseHooks
from conformance.session.worker.worker import Worker
from host.text import complain
from kernels.errors import KernelsError, KernelTrouble, UserMistake
from vm.errors import VmError

_CASE_HOOKS = "uevt-running"
_SELECTION = "uevt-selecting"
_WORKER = pytest.StashKey[Worker]()
_CONTROLLER = pytest.StashKey[Controller]()
_TARGET = pytest.StashKey[Target]()
_SYSTEM = pytest.StashKey[BorrowedSystem]()
_KTAP = pytest.StashKey[TextIO | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a run; `uevt run` passes its own on."""
    group = parser.getgroup("uevt", "conformance of the user_events ABI")
    add = group.addoption
    add("--kernel", metavar="K", help="a kernel of the catalog (6.12), or `model` (self-check)")
    add("--guests", type=int, metavar="N", help="run cases in N processes, each with a guest")
    add("--most-guests", type=int, metavar="N", help="as --guests, or fewer if cases are short")
    # pytest's help shows one group.
    declare(lambda _: add)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Build the kernel, test the accelerator and claim the directory, once and first.

    A run that cannot begin ends here with a documented exit code, before any session.
    """
    option = config.option
    named = (*KERNELS, "resume")
    if all(getattr(option, name) is None for name in named):
        apply_defaults(option)
        return None
    try:
        if option.resume is not None:
            recall_options(option)
        apply_defaults(option)
        _check(config)
        if option.collectonly:
            # A list of cases is no run: nothing is booted or written.
            config.stash[_TARGET] = resolve(option)
            return None
        controller = _controller(config)
        if controller.complete:
            return controller.conclude()
        config.stash[_CONTROLLER] = controller
    except Refused as error:
        return _fail(config, error, Ending.NOT_APPLICABLE)
    except ProfileError as error:
        # The running kernel may be older than user_events.
        unasked = option.here and option.abi is None
        return _fail(config, error, Ending.NOT_APPLICABLE if unasked else Ending.USAGE)
    except (UserMistake, ReportError, RuleError) as error:
        return _fail(config, error, Ending.USAGE)
    except KernelTrouble as error:
        return _fail(config, error, Ending.BUILD_FAILED)
    except (KernelsError, VmError, OSError) as error:
        return _fail(config, error, Ending.HOST)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, ExitStyle(option.exit_style or "default"))
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins of a process that runs cases, or controls workers that do."""
    config.addinivalue_line("markers", "uevt_full: a variant of tier full in a quick case")
    config.addinivalue_line("markers", "uevt_variants(names, rows): the variants of a case")
    if _TARGET in config.stash:
        listing = CaseSelection(config.stash[_TARGET], CaseHistory({}), lambda *_: None)
        config.pluginmanager.register(listing, _SELECTION)
    if _CONTROLLER not in config.stash:
        return
    controller, option = config.stash[_CONTROLLER], config.option
    number = option.guests or option.most_guests
    config.pluginmanager.register(controller, CONTROLLER)
    selection = CaseSelection(controller.target, controller.history, controller.note_selection)
    config.pluginmanager.register(selection, _SELECTION)
    if number is None:
        _run_cases(config, selection, _worker(config, controller, controller.directory))
        return
    prelaunch = Prelaunch(lambda name: _worker(config, controller, controller.directory / name))

    def prepare(name: str) -> CaseHooks:
        """Turn a forked process into a worker."""
        worker = prelaunch.take(name)
        controller.close_after_fork()
        for plugin in (controller, pool):
            config.pluginmanager.unregister(plugin)
        return _run_cases(config, selection, worker)

    pool = WorkerPool(
        config,
        controller,
        number,
        prepare,
        prelaunch,
        lambda: _prepare_machines(controller.target),
        as_needed=option.guests is None,
    )
    config.pluginmanager.register(pool, POOL)


def _check(config: pytest.Config) -> None:
    """Refuse what is wrong before a kernel is built."""
    if not __debug__:
        why = "Python runs without assertions, and cases consist of them"
        raise UserMistake(why, "unset PYTHONOPTIMIZE, and leave out -O")
    if getattr(config.option, "numprocesses", None):
        raise UserMistake("xdist cannot distribute cases", "leave out -n, and give --guests N")
    for option in ("--guests", "--most-guests"):
        number = config.getoption(option)
        if number is not None and number < 1:
            what = f"{option} needs a number, 1 or more"
            raise UserMistake(what, "leave it out to run in this process")
    for name in (CONTROLLER, _SELECTION, _CASE_HOOKS, POOL):
        if config.pluginmanager.is_blocked(name):
            raise UserMistake(f"nothing is judged without {name}", f"leave out -p no:{name}")
    if config.option.shard is not None and config.option.flavour == "gcov":
        raise UserMistake("--shard: coverage of shards cannot be joined", "leave out --shard")
    expression(config.option.keyword)
    named_ids(config)
    _allowed()
    require_open_files()
    check(config.option)
    check_directory(config.option)


def _controller(config: pytest.Config) -> Controller:
    ktap = config.stash[_KTAP] = open_ktap(config.option.ktap)
    tidy()
    target = resolve(config.option)
    if target.here:
        config.stash[_SYSTEM] = BorrowedSystem.claim(even_so=bool(config.option.even_so))
    else:
        # Imported late, as all that needs QEMU or its clients.
        from conformance.session.preflight.trial_boot import check_boots

        check_boots(target)
    words = command_words(config.option)
    return Controller(config, target, results_directory(config, target), ktap, words)


def _allowed() -> Allowed:
    """The rules of today.  Raises RuleError, also for an expired rule."""
    return Allowed.load(datetime.now(UTC).date())


def _fail(config: pytest.Config, error: Exception, ending: Ending) -> int:
    complain(getattr(error, "with_hint", error))
    ktap = config.stash.get(_KTAP, None)
    if ktap is not None:
        with ktap:
            if ending is Ending.NOT_APPLICABLE:
                write_skipped(ktap, str(error))
    return observe(config, exit_code(ending, ExitStyle(config.option.exit_style or "default")))


def _run_cases(config: pytest.Config, selection: CaseSelection, worker: Worker) -> CaseHooks:
    """Let this process run cases."""
    config.stash[_WORKER] = worker
    hooks = CaseHooks(worker, selection)
    config.pluginmanager.register(hooks, _CASE_HOOKS)
    return hooks


def _worker(config: pytest.Config, controller: Controller, directory: Path) -> Worker:
    return Worker(
        controller.target,
        directory,
        allowed=_allowed(),
        fresh_guests=config.option.isolation == "case",
        repeat=config.option.repeat or 1,
        limit=controller.limit,
        lost=controller.lost,
        system=config.stash.get(_SYSTEM, None),
    )


def _prepare_machines(target: Target) -> None:
    from conformance.session.worker.machine_guest import prepare_machines

    prepare_machines(target)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run cases without a kernel."""
    known = _CONTROLLER in config.stash or _TARGET in config.stash
    if not known and any(case_of(item) is not None for item in items):
        refuse(
            config, "cases need a kernel: add --kernel 6.12, --kernel model, --image FILE or --here"
        )


@pytest.fixture
def ue(pytestconfig: pytest.Config) -> UserEvents:
    """user_events of the kernel under test, in lock step with the model."""
    return pytestconfig.stash[_WORKER].begin()
