"""The stand-alone program of a result."""

from __future__ import annotations

from conformance.abi.profile import Profile, ProfileError, profile_for
from conformance.repro.errors import NotExpressible
from conformance.repro.source import Description, c_program
from conformance.results.case_result import LEFTOVER, CaseResult
from conformance.results.multi_format import from_zero
from conformance.results.run import RunHead


def only_literal(result: CaseResult) -> str:
    """Why no program shows a result of which only a literal of the case differs, else ""."""
    if not result.mismatches or any(each.field != "literal" for each in result.mismatches):
        return ""
    where = f", {result.location}" if result.location else ""
    return f"only a literal of the case differs{where}: the program would exit 0"


def described(result: CaseResult, head: RunHead) -> Description:
    """The comment of its program."""
    about = f"user_events of {head.kernel.profile}; observed: {head.kernel.id}"
    outlived = result.id.endswith(f".{LEFTOVER}")
    return Description(result.id, result.sentence, result.evidence.docs, about, outlived)


def profile_of(head: RunHead) -> Profile:
    """The profile that a run was judged by.  Raises ProfileError."""
    base = None if head.self_check else head.kernel.release
    return profile_for(head.kernel.profile, base=base)


def program_of_result(result: CaseResult, head: RunHead) -> str:
    """The C source with the answers that this kernel gave.  Raises NotExpressible."""
    evidence = result.evidence
    if not evidence.program:
        raise NotExpressible(evidence.left_out or "the result has no recorded program")
    if why := only_literal(result):
        raise NotExpressible(why)
    try:
        return c_program(from_zero(evidence.program), profile_of(head), described(result, head))
    except (ProfileError, ValueError) as error:
        raise NotExpressible(str(error)) from error
