"""One result that deviates, with everything needed to judge and repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from conformance.client.tracefs import PROBE_ATTACH, ROOT
from conformance.report.difference import difference_lines, elided
from conformance.report.program import program_lines
from conformance.results.case_result import CaseResult, Report, Rerun, Which
from conformance.results.outcome import DEVIATIONS, Blame, Outcome
from conformance.results.run import RunHead
from host.text import counted, first, folded, one_line, wrapped

# The helper module, by its directory in /sys/module.
_HELPER = PROBE_ATTACH.split("/")[3]
# Cases of one cause that are named.
_MOST_ALIKE = 40
# Of so few the sentences are printed: the simplest case may be among them.
_MOST_SENTENCES = 3
# Column of the text after labels such as "case" and "decided by".
_COLUMN = 12
# Documentation/trace/user_events.rst@v6.12: a file of the kernel's tree at a tag.
_FILE_AT_TAG = re.compile(r"(?P<file>[\w.-]+(/[\w.-]+)+)@(?P<tag>v\d+\.\d+[\w.-]*): ")


def render_failure(result: CaseResult, head: RunHead | None = None) -> list[str]:
    """The result as lines of at most 100 columns; the first is the heading.

    With ``head``, that of its run, the last line is the command that runs the case again.  It is
    a single line of any length, to be copied.  Empty parts are left out.
    """
    lines = wrapped(_heading(result), hanging=4)
    lines += _paragraph(result.sentence)
    if result.reason not in map(str, result.mismatches):
        lines += _paragraph(result.reason)
    lines += difference_lines(result)
    lines += _program(result)
    lines += _block("the kernel reported", [line for r in result.reports for line in _report(r)])
    lines += _block("console", folded(elided(_content(result.evidence.console)), indent=4))
    if result.adapted:
        lines += _paragraph(adapted_line(result))
    if result.rerun:
        lines += _paragraph(rerun_line(result.rerun))
    lines += _references(result)
    if head is not None and (command := head.command_for(result)):
        lines.append(f"  {'rerun':<{_COLUMN}}{one_line(command)}")
    return lines


def render_cause(one: CaseResult, others: Sequence[CaseResult], head: RunHead) -> list[str]:
    """One failure of a cause, and the names of the others."""
    return [*render_failure(one, head), *alike_lines(one, others)]


def alike_lines(one: CaseResult, others: Sequence[CaseResult]) -> list[str]:
    """Other cases of a cause; outcomes only where they are not that of the one shown."""
    if not others:
        return []
    ids = [
        each.id if each.outcome is one.outcome else f"{each.id} ({each.outcome})" for each in others
    ]
    number = counted(len(others), "more case")
    # Cases that no guest ran: a few names will do.
    error = one.outcome is Outcome.ERROR
    text = f"the same {'error' if error else 'difference'} as {one.id} in {number}:"
    most = _MOST_SENTENCES if error else _MOST_ALIKE
    if len(others) > _MOST_SENTENCES or not all(each.sentence for each in others):
        return wrapped(f"{text} {', '.join(first(ids, most))}", indent=2, hanging=2)
    sentences = [one_line(f"{id}: {each.sentence}") for id, each in zip(ids, others, strict=True)]
    lines = [line for each in sentences for line in wrapped(each, indent=4, hanging=2)]
    return [*wrapped(text, indent=2, hanging=2), *lines]


def remark(result: CaseResult) -> str:
    """One line about a fixed bug or a deviation, for a case that fails no run; else ""."""
    if result.outcome in DEVIATIONS:
        return one_line(f"{result.outcome} ({result.level.words}): {result.difference}")
    return one_line(f"FIXED: {result.reason}") if result.outcome is Outcome.FIXED else ""


def adapted_line(result: CaseResult) -> str:
    """One line about the switches that were measured and differ from the profile."""
    return f"judged with measured switches: {', '.join(result.adapted)}"


def rerun_line(rerun: Rerun) -> str:
    """One line about the other run of a case that ran twice."""
    blame = f", blame {rerun.blame}" if rerun.blame is not Blame.NONE else ""
    ended = f"{rerun.outcome}{blame}" + (f": {one_line(rerun.reason)}" if rerun.reason else "")
    if rerun.of is Which.FIRST:
        return f"this is the result of a second run; the first gave no verdict ({ended})"
    return f"the first result stands; a second run on a new guest gave {ended}"


def documentation_link(docs: str) -> str:
    """A web page for documentation given as ``file@tag: text``, "" for any other form."""
    found = _FILE_AT_TAG.match(docs)
    if found is None:
        return ""
    return f"https://elixir.bootlin.com/linux/{found['tag']}/source/{found['file']}"


def _heading(result: CaseResult) -> str:
    facts = [result.level.words] if result.outcome in DEVIATIONS else []
    facts += [f"blame {result.blame}"] if result.blame not in (Blame.NONE, Blame.KERNEL) else []
    # What a case left has no duration.
    facts += [] if result.aftermath_of else [f"{result.duration_s:.2f} s"]
    return f"{result.outcome} {result.id}" + (f" ({', '.join(facts)})" if facts else "")


def _paragraph(text: str) -> list[str]:
    return wrapped(one_line(text), indent=2, hanging=2) if text.strip() else []


def _block(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}", *lines] if lines else []


def _program(result: CaseResult) -> list[str]:
    lines = program_lines(result)
    title = f"program, paths below {ROOT}"
    if any(_HELPER in line for line in lines):
        title += f"; {_HELPER} is a module of uevt"
    return _block(title, lines)


def _report(report: Report) -> Iterator[str]:
    yield from wrapped(one_line(str(report)), indent=4, hanging=4)
    yield from wrapped(f"fingerprint  {one_line(report.fingerprint)}", indent=6, hanging=13)
    if report.allowed:
        yield from wrapped(f"allowed      {one_line(report.allowed)}", indent=6, hanging=13)


def _references(result: CaseResult) -> Iterator[str]:
    """Source of the case, the kernel function that decides, and the documentation."""
    docs = one_line(result.evidence.docs)
    for label, text in (
        ("case", result.location),
        ("decided by", result.evidence.spec),
        ("documents", docs),
        ("", documentation_link(docs)),
    ):
        if text and label:
            yield from wrapped(f"{label:<{_COLUMN}}{one_line(text)}", indent=2, hanging=_COLUMN)
        elif text:
            yield from wrapped(text, indent=2 + _COLUMN, hanging=_COLUMN)


def _content(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    return lines if any(lines) else []
