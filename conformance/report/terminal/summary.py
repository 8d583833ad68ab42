"""The summary of a run as text; the last line is the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import groupby
from pathlib import Path

from conformance.abi.profile import ProfileError, profile_for
from conformance.report.causes import by_cause, deciding_functions
from conformance.report.failure import alike_lines, render_cause, rerun_line
from conformance.results.case_result import MODULE_SURFACE, CaseResult
from conformance.results.contradiction import Contradiction, abi_with
from conformance.results.directory import REPORT, REPRODUCERS
from conformance.results.outcome import Level, Outcome, SkipReason
from conformance.results.run import RunRecord
from conformance.results.verdict import case_line, verdict_line
from host.text import WIDTH, counted, first, one_line, wrapped

DETAILED = 10
"""Causes with details; more would bury the summary."""

_FEW = 4
"""Details of one reason to skip that are listed; they are of single cases otherwise."""
_MANY = 50
"""Skipped cases for one reason that are listed; more are counted."""


def render_summary(
    record: RunRecord,
    *,
    directory: Path | None = None,
    colour: bool = False,
    shown: Collection[str] | None = None,
) -> str:
    """The summary, ending with the verdict line.

    ``directory`` has the results of the run.  ``shown`` are the cases that were printed as they
    ended; of their causes only the other cases are named.
    """
    lines = _failures(record, shown or ())
    lines += _facts(record)
    lines += _weighed(record, Outcome.CHANGED, Level.BEHAVIOUR, "changed behaviour, undocumented")
    lines += _weighed(record, Outcome.NOTE, Level.DETAIL, "changed details")
    if places := deciding_functions(record.cases):
        lines += wrapped(places, hanging=2)
    lines += _known_bugs(record)
    lines += _fixed_bugs(record)
    lines += _skipped(record)
    lines += _reruns(record)
    lines += _contradictions(record)
    lines += _shortest(record)
    if directory is not None:
        report, programs = directory / REPORT, directory / REPRODUCERS
        if programs.is_dir():
            lines.append(f"programs  {one_line(str(programs))}: the deviations as C programs")
        lines.append(f"results   {one_line(str(directory))}")
        if report.exists():
            lines.append(f"report    {one_line(str(report))}")
    lines.append(verdict_line(record, colour=colour))
    return "\n".join(lines) + "\n"


def _failures(record: RunRecord, shown: Collection[str]) -> list[str]:
    """Each cause that fails the run: its first case, unless one was shown, and the others."""
    failed = {case.id for case in record.failures}

    def rank(case: CaseResult) -> tuple[bool, ...]:
        """Of one cause, the case that was shown comes first; what a case left comes last."""
        of = case.aftermath_of
        return case.id not in shown, bool(of), of in failed

    causes = by_cause(sorted(record.failures, key=rank))
    lines: list[str] = []
    detailed = 0
    for case, others in causes:
        if case.id in shown:
            if others:
                lines += [*alike_lines(case, others), ""]
        elif case.aftermath_of in failed:
            lines += [*wrapped(case_line(case), hanging=2), *alike_lines(case, others), ""]
        elif detailed < DETAILED:
            detailed += 1
            lines += [*render_cause(case, others, record.head), ""]
        else:
            lines += wrapped(case_line(case), hanging=2) + alike_lines(case, others)
    if len(causes) > DETAILED:
        lines += [f"{counted(len(causes), 'difference')}; results.json has the details", ""]
    return lines


def _shortest(record: RunRecord) -> list[str]:
    """Of several causes, the failure to read first, with the command that runs it again."""
    readable = [case for case in record.failures if case.mismatches and case.evidence.steps]
    if len(by_cause(readable)) < 2:
        return []
    case = min(readable, key=lambda each: len(each.evidence.steps))
    steps = counted(len(case.evidence.steps), "step")
    named, command = f"shortest  {case.id}, {steps}", one_line(record.head.command_for(case))
    if not command:
        return [named]
    line = f"{named}: {command}"
    # A command is never folded: it is there to be copied.
    return [line] if len(line) <= WIDTH else [f"{named}:", f"          {command}"]


def _facts(record: RunRecord) -> list[str]:
    kernel, host = record.head.kernel, record.head.host
    facts = [("kernel", _kernel(record)), ("source", kernel.source or ""), ("host", _host(host))]
    if (guests := host.get("guests", "")).startswith("booted: "):
        facts.append(("guests", guests))
    if record.functions is not None:
        applying, all_ = record.functions.applying, record.functions.all
        count = f"{applying:,} of {all_:,} case functions; the others are for other releases"
        facts.append(("applying", count))
    for word in record.head.asked:
        if word.startswith("--repeat="):
            number = word.partition("=")[2]
            facts.append(("repeat", f"{number} runs of each case, up to an unexpected one"))
    for module in record.cases:
        if module.surface == MODULE_SURFACE and module.outcome is Outcome.PASS:
            facts.append(("module", module.reason))
    contradicted = {each.switch for each in record.contradicted}
    if measured := ", ".join(name for name in record.adapted if name not in contradicted):
        facts.append(("adapted", f"measured, not of the profile: {measured}"))
    facts.append(("note", record.trouble or ("" if record.not_built else record.note)))
    shown = [wrapped(f"{name:<9} {one_line(text)}", hanging=10) for name, text in facts if text]
    return [line for lines in shown for line in lines]


def _host(host: Mapping[str, str]) -> str:
    """The accelerator, and why KVM was not used."""
    reason = host.get("accel_reason", "")
    if "kvm" in host and host["accel"] == "tcg":
        reason = f"KVM {host['kvm']}, see uevt doctor"
    return host["accel"] + (f" ({reason})" if reason else "")


def _kernel(record: RunRecord) -> str:
    kernel = record.head.kernel
    variant = f", variant {kernel.variant}" if kernel.variant else ""
    config = f", config {kernel.config_sha256[:12]}" if kernel.config_sha256 else ""
    release = f" ({kernel.release})" if kernel.release else ""
    return f"{kernel.id}{release}, profile {kernel.profile}{variant}{config}"


def _contradictions(record: RunRecord) -> list[str]:
    if not record.contradicted:
        return []
    lines = ["contradicted switches"]
    for found in record.contradicted:
        lines += wrapped(_contradiction(record, found), indent=2, hanging=2)
    abi = one_line(abi_with(record.head.kernel.profile, record.contradicted))
    advice = _other_interface(record) or f"to judge by the kernel as measured: --abi {abi}"
    return lines + wrapped(advice, indent=2, hanging=2)


def _other_interface(record: RunRecord) -> str:
    """The advice where the ABI is of another generation than the release, "" if it is not."""
    kernel = record.head.kernel
    try:
        judged, running = profile_for(kernel.profile), profile_for(kernel.release)
    except ProfileError:
        return ""
    if kernel.variant or judged.generation is running.generation:
        return ""
    name = kernel.profile.partition(",")[0]
    return f"{kernel.release} and {name} have different interfaces: leave out --abi"


def _contradiction(record: RunRecord, found: Contradiction) -> str:
    here, dated = found.states
    touched = [case for case in record.cases if found.switch in case.adapted]
    unjudged = sum(case.outcome is Outcome.SKIP for case in touched)
    return one_line(
        f"{found.switch}: {here} in this kernel, {dated} in the profile;"
        f" judged as measured: {len(touched) - unjudged}, not judged: {unjudged}"
    )


def _weighed(record: RunRecord, outcome: Outcome, level: Level, title: str) -> list[str]:
    """Deviations that are too weak to fail the run, below the sentences that do not hold."""
    if record.head.fails(outcome):
        return []
    cases = [case for case in record.cases if case.outcome is outcome]
    if not cases:
        return []
    shown = []
    for promise, same in groupby(cases, key=_promise):
        above = wrapped(one_line(promise), indent=2, hanging=2) if promise else []
        for case in same:
            shown.append("\n".join([*above, *wrapped(case_line(case), indent=4, hanging=4)]))
            above = []
    hint = f"  --fail-on {level} prints their programs, and fails"
    return [f"{title}: {len(cases)}", *first(shown, _MANY, "  and {} more"), hint]


def _promise(case: CaseResult) -> str:
    """The sentence of a case, and the kernel function that decides."""
    spec = case.evidence.spec
    return f"{case.sentence} ({spec})" if case.sentence and spec else case.sentence


def _known_bugs(record: RunRecord) -> list[str]:
    """How many known bugs the kernel has."""
    cases = [case for case in record.cases if case.outcome is Outcome.XFAIL]
    bugs = len({bug for case in cases for bug in case.bug.split()})
    known = f"known bugs: {bugs}, in {counted(len(cases), 'case')} (docs/findings.md)"
    return [known] if bugs else []


def _fixed_bugs(record: RunRecord) -> list[str]:
    """Known bugs that the kernel does not have, each with the number of its cases."""
    cases = [case for case in record.cases if case.outcome is Outcome.FIXED]
    lines = ["fixed: without the known bugs"] if cases else []
    fixed = Counter(bug for case in cases for bug in case.bug.split())
    for bug, number in sorted(fixed.items()):
        symptoms = (case.reason for case in cases if bug in case.bug.split())
        symptom = next(symptoms).partition(": ")[2]
        text = one_line(f"{bug}, {counted(number, 'case')}: {symptom}")
        lines += wrapped(text, indent=2, hanging=2)
    return lines


def _skipped(record: RunRecord) -> list[str]:
    """Skipped cases by reason."""
    lines: list[str] = []
    for reason in SkipReason:
        cases = [each for each in record.cases if each.skipped_for(reason)]
        # Counted with their switch.
        if not cases or reason is SkipReason.CONTRADICTED:
            continue
        lines.append(f"skipped   {len(cases)}: {reason.sentence}")
        details = sorted({one_line(case.evidence.docs) for case in cases if case.evidence.docs})
        for detail in details if len(details) < _FEW else ():
            lines += wrapped(detail, indent=2, hanging=2)
        # The whole run has one cause: do not list the ids.
        if len(cases) <= _MANY:
            for case in cases:
                lines += wrapped(case.id, indent=2)
    return lines


def _reruns(record: RunRecord) -> list[str]:
    lines: list[str] = []
    for case in record.cases:
        # A failure has this line itself.
        if case.rerun and not record.head.fails(case.outcome):
            text = f"{case.id} {case.outcome}: {rerun_line(case.rerun)}"
            lines += wrapped(text, indent=2, hanging=2)
    return ["run twice", *lines] if lines else []
