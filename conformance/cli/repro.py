"""`uevt repro`: a case, or a failure of a run, as a stand-alone program."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from msgspec.structs import replace

from conformance.abi.profile import Profile, ProfileError, in_range, profile_for
from conformance.cases.case import Case
from conformance.cases.variants import all_variants
from conformance.cli.output import STDOUT, write
from conformance.repro.errors import NotExpressible
from conformance.repro.of_result import described, only_literal, profile_of
from conformance.repro.shell import shell_script
from conformance.repro.source import Description, c_program
from conformance.results.case_result import CaseResult
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.multi_format import from_zero
from conformance.results.outcome import Outcome
from conformance.results.recorded_program import RecordedStep
from conformance.results.results_json import read_results
from conformance.results.stored_runs import find_run
from conformance.runner.model_program import program_of
from kernels.errors import UserMistake

# The ABI of a case without --abi.
_ABI = "6.12.117"
_MOST_LISTED = 5


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("what", metavar="CASE|RUN", help="the id of a case, or a directory of results")
    add("-k", dest="case", default="", metavar="CASE", help="the case of the RUN, by its id")
    add("--abi", metavar="A", help=f"expect the answers of an ABI (default: {_ABI}, or the RUN's)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--c", action="store_true", help="write C (the default)")
    form.add_argument("--shell", action="store_true", help="write a shell script")
    add("--out", type=Path, metavar="FILE", help="write to a file")
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """Raises UserMistake, also for a program that cannot be written, ReportError."""
    try:
        steps, profile, about = _program(arguments)
        if arguments.out not in (None, STDOUT):
            about = replace(about, file=arguments.out.name)
        text = shell_script(steps, about) if arguments.shell else c_program(steps, profile, about)
    except ValueError as error:
        # Also an operation or a profile of another uevt.
        raise UserMistake(f"{arguments.case or arguments.what}: {error}") from error
    write(text, arguments.out)
    return exit_code(Ending.PASS)


def _program(
    arguments: argparse.Namespace,
) -> tuple[tuple[RecordedStep, ...], Profile, Description]:
    if os.sep not in arguments.what and not Path(arguments.what).exists():
        if arguments.case:
            what = f"{arguments.what} does not exist, and -k is of a RUN"
            raise UserMistake(what, "name a directory of results, or omit -k")
        return _of_case(arguments.what, _profile(arguments.abi or _ABI))
    record = read_results(find_run(Path(arguments.what)))
    result = chosen(record.cases, arguments.case, arguments.what)
    if not result.evidence.program or arguments.abi:
        return _of_case(result.id, _profile(arguments.abi or record.head.kernel.profile))
    if why := only_literal(result):
        raise NotExpressible(why)
    steps = from_zero(result.evidence.program)
    return steps, profile_of(record.head), described(result, record.head)


def chosen(cases: tuple[CaseResult, ...], wanted: str, run: str) -> CaseResult:
    """The result of a case, or of what it left; without a name the only one that deviates."""
    if wanted:
        found = [each for each in cases if each.aftermath_of == wanted and each.evidence.program]
        found = found[:1] or [each for each in cases if each.id == wanted]
    else:
        found = [each for each in cases if each.unexpected]
        found = found or [each for each in cases if each.outcome is Outcome.XFAIL]
    if len(found) == 1:
        return found[0]
    if wanted:
        raise UserMistake(f"{run} has no result of the case {wanted}", "-k takes a whole id")
    if not found:
        raise UserMistake(f"no case of {run} deviates", "name a case with -k")
    names = ", ".join(each.id for each in found[:_MOST_LISTED])
    raise UserMistake(f"{len(found)} cases of {run} deviate", f"name one with -k: {names}")


def _of_case(
    wanted: str, profile: Profile
) -> tuple[tuple[RecordedStep, ...], Profile, Description]:
    """The program of a case, run on the model."""
    found = (each for each in all_variants() if wanted in (each.id, each.case.id))
    variant = next(found, None)
    if variant is None:
        raise UserMistake(f"no case is called {wanted}", "uevt cases lists them")
    case = variant.case
    if not case.applies(profile):
        what = f"{variant.id} does not apply to {profile.name}, only to {applying(case, profile)}"
        raise UserMistake(what, "name another ABI: --abi")
    about = Description(variant.id, case.sentence, case.doc, f"user_events of {profile.name}")
    return program_of(variant, profile), profile, about


def applying(case: Case, profile: Profile) -> str:
    """The kernels that a case applies to, by what excludes a profile."""
    if not in_range(case.profiles, profile):
        first, dots, last = case.profiles.partition("..")
        return first if not dots else f"{first} to {last}" if last else f"{first} and later"
    needs = [f"with {each}" for each in case.needs if not profile.has(each)]
    without = [f"without {each}" for each in case.without if profile.has(each)]
    return f"kernels {' and '.join(needs + without)}"


def _profile(abi: str) -> Profile:
    try:
        return profile_for(abi)
    except ProfileError as error:
        raise UserMistake(str(error), "name a release: --abi 6.12") from error
