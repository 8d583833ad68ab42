"""`uevt replay`: the program of a bundle on other kernels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path

from conformance.abi.profile import Profile
from conformance.cases.variants import all_variants
from conformance.cli import one_kernel
from conformance.cli.repro import applying
from conformance.client.executor import Executor, ModelExecutor
from conformance.model.machine import Model
from conformance.ops import Ioctl, RunProgram
from conformance.ops.encoding import decode_operation
from conformance.repro.of_result import profile_of
from conformance.results.bundle import Bundle, read_bundle
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code, worst
from conformance.results.multi_format import from_zero
from conformance.results.recorded_program import RecordedStep
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.guest_setup import ACTOR, GuestSetup
from conformance.runner.host_programs import HostPrograms
from conformance.runner.patience import Patience
from conformance.runner.process_pool import ProcessPool
from conformance.runner.recorded_run import RecordedRun
from conformance.session.options import KERNEL, declare_kernel, groups_of, make_absolute, replaced
from conformance.session.target.target import Target
from conformance.session.worker.machine_guest import MachineGuest
from host.temporary_directories import scratch
from host.text import one_line, wrapped
from vm.errors import GuestCrashed, VmError


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt replay BUNDLE (--kernel K … | --tree DIR | --image FILE) [option …]"
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="a file of uevt bundle")
    group = groups_of(parser)
    about = "6.12 or model; may be repeated"
    group(KERNEL)("--kernel", action="append", metavar="K", help=about)
    declare_kernel(group)
    parser.set_defaults(perform=_perform, abi=None, module=[], out=None, ktap=None, resume=None)


class _Ending(StrEnum):
    """How the program ended on a kernel; the text is what the last lines say."""

    ALLOWED = "every answer is an allowed one"
    AS_RECORDED = "as recorded"
    OTHERWISE = "otherwise"
    UNDECIDED = "undecided"
    LOST = "its guest failed"
    NOT_APPLICABLE = "does not apply"


_EXIT = {
    _Ending.ALLOWED: Ending.PASS,
    _Ending.AS_RECORDED: Ending.UNEXPECTED,
    _Ending.OTHERWISE: Ending.UNEXPECTED,
    _Ending.UNDECIDED: Ending.SKIPPED,
    _Ending.LOST: Ending.SKIPPED,
}


def _perform(arguments: argparse.Namespace) -> int:
    """0 if every kernel gives allowed answers, 1 if one does not, 3 if one gives no verdict; 2 if
    the case applies to none.

    Raises KernelsError, ReportError.
    """
    bundle = _readable(arguments.bundle)
    make_absolute(arguments)
    targets = []
    for kernel in arguments.kernel or [None]:
        with one_kernel.resolved(replaced(arguments, kernel=kernel), "replayed") as target:
            targets.append(target)
    recorded = bundle.head.kernel.id
    _say(f"{bundle.result.id}, recorded on {recorded}: {bundle.result.difference}")
    ended: dict[str, _Ending] = {}
    for target in targets:
        ended[target.id], lines = _on_kernel(bundle, target)
        _say(f"{target.id}: {lines[0]}")
        for line in lines[1:]:
            _say(line, indent=2)
    for ending in (_Ending.AS_RECORDED, _Ending.OTHERWISE):
        names = [name for name, each in ended.items() if each is ending]
        _say(f"{ending}: {', '.join(names) or 'no kernel'}")
    judged = [_EXIT[each] for each in ended.values() if each is not _Ending.NOT_APPLICABLE]
    return exit_code(worst(judged or [Ending.NOT_APPLICABLE]))


def _readable(file: Path) -> Bundle:
    """A bundle whose profile and operations are known here.  Raises ReportError."""
    bundle = read_bundle(file)
    try:
        profile_of(bundle.head)
        for step in bundle.result.evidence.program:
            decode_operation(step.operation)
    except ValueError as error:
        hint = f"replay it with the uevt that wrote it: {bundle.head.suite}"
        raise ReportError(file, str(error), hint) from error
    return bundle


def _say(text: str, indent: int = 0) -> None:
    for line in wrapped(one_line(text), indent=indent, hanging=4):
        sys.stdout.write(f"{line}\n")


def _on_kernel(bundle: Bundle, target: Target) -> tuple[_Ending, list[str]]:
    """How the program ends on a kernel, and the lines about it."""
    program = from_zero(bundle.result.evidence.program)
    if target.is_model:
        return _ended(RecordedRun(program, ModelExecutor(Model(profile_of(bundle.head)))))
    if target.id != bundle.head.kernel.id and (why := _excluded(bundle, target.profile)):
        return _Ending.NOT_APPLICABLE, [f"{_Ending.NOT_APPLICABLE}{why}"]
    try:
        with _executor(program, target) as executor:
            run = RecordedRun(program, executor)
            try:
                return _ended(run)
            except GuestCrashed as error:
                call, as_recorded = run.unanswered
                ending = _Ending.AS_RECORDED if as_recorded else _Ending.OTHERWISE
                return ending, [f"crashes {_word(ending)}", call, str(error)]
    except VmError as error:
        return _Ending.LOST, [f"{_Ending.LOST}: {error.with_hint}"]


def _excluded(bundle: Bundle, profile: Profile) -> str:
    """Why the program does not judge a kernel; "" if it does, or its case is not known here."""
    wanted, recorded = bundle.result.aftermath_of or bundle.result.id, profile_of(bundle.head)
    case = next((each.case for each in all_variants() if each.id == wanted), None)
    if case is not None and not case.applies(profile):
        return f", only to {applying(case, profile)}"
    calls = (step.operation["op"] for step in bundle.result.evidence.program)
    if profile.generation is not recorded.generation and Ioctl.__name__ in calls:
        return f": its ioctl(2) interface is not that of {recorded.release}"
    return ""


def _ended(run: RecordedRun) -> tuple[_Ending, list[str]]:
    """Perform a run."""
    found = run.run()
    if found is None:
        return _Ending.ALLOWED, [_Ending.ALLOWED]
    shown = [found.call, str(found.mismatch)]
    if run.other_course:
        why = f"step {run.other_course} took another allowed course than recorded"
        return _Ending.UNDECIDED, [f"undecided: {why}", *shown]
    ending = _Ending.AS_RECORDED if found.as_recorded else _Ending.OTHERWISE
    return ending, [f"diverges {_word(ending)}", *shown]


def _word(ending: _Ending) -> str:
    return "as recorded" if ending is _Ending.AS_RECORDED else "otherwise than recorded"


@contextmanager
def _executor(program: Sequence[RecordedStep], target: Target) -> Iterator[Executor]:
    """A guest of the kernel that performs operations.  Raises VmError."""
    with scratch() as directory, closing(MachineGuest(target, directory)) as guest:
        guest.wait_ready()
        runs = any(step.operation["op"] == RunProgram.__name__ for step in program)
        if runs:
            guest.pristine(programs=True)
        GuestSetup(guest)
        if runs:
            HostPrograms(guest).mount(guest.mounting())
        yield GuestExecutor(guest, ProcessPool(guest, standing=ACTOR), Patience())
