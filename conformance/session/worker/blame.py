"""Translate errors of the machine and kernel reports into outcomes and blame."""

from __future__ import annotations

import errno
import re

from conformance.results.case_result import Report
from conformance.results.judging import timed_out
from conformance.results.outcome import Blame, Outcome
from conformance.runner.judgement import Judgement
from conformance.session.time_limits import CaseTooLong
from host.kernel_reports import HARMLESS, ReportKind
from vm.errors import BootFailed, CallRefused, GuestCrashed, GuestTrouble, NoAnswer, Party, VmError
from vm.kernel_log.reports import Finding
from vm.kernel_log.stack_traces import fingerprint

# The host is out of space, files or memory.
_REFUSALS = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
)
# Blame for a failed boot, which is no evidence about the ABI.
_OF_BOOT = {Party.KERNEL: Blame.KERNEL, Party.AGENT: Blame.GUEST, Party.HOST: Blame.HOST}
# Names of the agent's processes.
_OURS = re.compile(r"|python3?(\.\d+)?|uevt_.*")


def explain(error: BaseException, answered_before: bool) -> Judgement | None:
    """The judgement of a case that an error of the machine ended; None for other errors."""
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        return Judgement(Outcome.ERROR, Blame.HOST, str(error))
    if not isinstance(error, VmError):
        return None
    reason = error.with_hint
    outcome, blame = _run_cases(error, answered_before)
    reports = tuple(report(each) for each in error.findings if each.kind not in HARMLESS)
    if isinstance(error, (BootFailed, NoAnswer)) and error.frames:
        hang = fingerprint(ReportKind.HANG, error.frames, "")
        reports += (Report(ReportKind.HANG.value, error.where, hang, error.frames),)
    return Judgement(outcome, blame, reason, error.console, reports)


def report(found: Finding, after: str = "") -> Report:
    """A kernel report as results have it."""
    context = "" if _OURS.fullmatch(found.task) else found.task
    if found.work:
        context += f", at {found.work}"
    return Report(
        found.kind.value, found.text, found.fingerprint, found.frames, context=context, after=after
    )


def _run_cases(error: VmError, answered_before: bool) -> tuple[Outcome, Blame]:
    match error:
        case GuestCrashed():
            return Outcome.CRASH, Blame.KERNEL
        case NoAnswer() if error.frames:
            # The stack shows where the kernel hangs, even if an earlier case caused it.
            return Outcome.TIMEOUT, Blame.KERNEL
        case NoAnswer():
            return timed_out(answered_before=answered_before)
        case CallRefused() | CaseTooLong():
            return Outcome.ERROR, Blame.CASE
        case BootFailed():
            return Outcome.ERROR, _OF_BOOT[error.party]
        case GuestTrouble():
            return Outcome.ERROR, Blame.GUEST
    return Outcome.ERROR, Blame.HOST
