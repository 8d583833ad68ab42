"""A run for GitHub Actions: annotations, and a step summary in Markdown.

GitHub shows ten annotations of each kind for a step, and refuses a summary of more than 1 MiB.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path

from conformance.report.causes import by_cause
from conformance.report.export.ktap import RUN_ID
from conformance.report.failure import remark, render_cause, rerun_line
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.results.verdict import case_line, verdict_line
from host.text import counted, one_line, printable

ANNOTATIONS = 10
"""Annotations of one kind that GitHub shows for a step."""
SUMMARY = 1 << 20
"""Maximal size of a step summary in bytes."""
SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
"""The variable with the path of the step summary."""
_SHARE = "UEVT_ANNOTATIONS"

# The runner cuts messages; the checks API limits titles.
_MESSAGE = 4096
_TITLE = 255
# Lists at the end of a summary.
_LISTED = {
    Outcome.CHANGED: "changed behaviour, undocumented",
    Outcome.NOTE: "changed details",
    Outcome.XFAIL: "known bugs",
    Outcome.FIXED: "fixed",
}
# Annotations of deviations that do not fail the run.
_WEAK = {Outcome.CHANGED: "warning", Outcome.NOTE: "notice"}
# Bytes for the note about omitted blocks.
_NOTE = 160
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|#(?=#\[)")


def in_workflow(environment: Mapping[str, str]) -> bool:
    """Whether the output is read by GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def share(environment: MutableMapping[str, str], runs: int) -> None:
    """Divide the annotations of a step among child processes, one for each run."""
    environment[_SHARE] = str(max(1, ANNOTATIONS // runs))


def shared(environment: Mapping[str, str]) -> int:
    """How many annotations of a kind this process may print."""
    given = environment.get(_SHARE, "")
    return int(given) if given.isdecimal() else ANNOTATIONS


def harmless(text: str) -> str:
    """Text for a workflow log without any command.

    The runner also obeys ``::command::`` after white space and ``##[command]`` anywhere, and a
    kernel's console may contain either.
    """
    return _COMMAND.sub(lambda found: f"{found[1]}\\x3a" if found[1] is not None else r"\x23", text)


def annotate(
    records: Iterable[RunRecord], most: int = ANNOTATIONS, *, require: bool = False
) -> list[str]:
    """Workflow commands, one a line: an error for each result that fails its run.

    A CHANGED below the line is a warning, a NOTE a notice.  Of more than ``most`` of a kind the
    last one counts the others.  A kernel without user_events is a notice, with ``require`` an
    error.
    """
    commands: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for record in records:
        commands["error"] += _errors(record)
        for case in record.cases:
            kind = _WEAK.get(case.outcome, "")
            if kind and not record.head.fails(case.outcome):
                commands[kind].append(_command(kind, _title_of(case, record), remark(case)))
        if record.not_built:
            title = f"{record.verdict} {record.head.kernel.id}"
            kind = "error" if require else "notice"
            commands[kind].append(_command(kind, title, one_line(record.not_built_reason)))
    return [each for kind, found in commands.items() for each in _limited(kind, found, most)]


def _limited(kind: str, found: list[str], most: int) -> list[str]:
    """At most so many commands of a kind; the last one counts those that are left out."""
    if len(found) <= most:
        return found
    what = f"{len(found) - most + 1} more results"
    return [*found[: most - 1], _command(kind, what, f"{what} are in the summary of this step.")]


def _errors(record: RunRecord) -> Iterator[str]:
    for case in record.failures:
        yield _command("error", _title_of(case, record), _message_of(case))
    if record.trouble:
        title = f"{record.verdict} {RUN_ID} on {record.head.kernel.id}"
        yield _command("error", title, one_line(record.trouble))


def _title_of(case: CaseResult, record: RunRecord) -> str:
    return f"{case.outcome} {case.id} on {record.head.kernel.id}"


def _message_of(case: CaseResult) -> str:
    """Reason and differences; the step summary has the details."""
    reasons = [one_line(case.reason)] if case.reason else []
    reasons += [printable(str(each)) for each in case.mismatches if str(each) != case.reason]
    return "\n".join(reasons + ([rerun_line(case.rerun)] if case.rerun else []))


def _command(kind: str, title: str, message: str) -> str:
    title = _escaped(one_line(title)[:_TITLE], "%\r\n:,")
    return f"::{kind} title={title}::{_escaped(message[:_MESSAGE])}"


def _escaped(text: str, marks: str = "%\r\n") -> str:
    return "".join(f"%{ord(each):02X}" if each in marks else each for each in text)


def append_summary(path: Path, records: Iterable[RunRecord]) -> list[RunRecord]:
    """Append summaries to a file; return the runs that did not fit.  Raises OSError."""
    omitted = []
    with path.open("ab") as file:
        for record in records:
            # A pipe or terminal has no size.
            text = render_summary(record, SUMMARY - (file.tell() if file.seekable() else 0))
            file.write(text.encode("utf-8"))
            if not text:
                omitted.append(record)
    return omitted


def render_summary(record: RunRecord, room: int = SUMMARY) -> str:
    """A run in Markdown of at most ``room`` bytes: the verdict, failures, other deviations.

    Texts of kernels are inside HTML elements, where Markdown has no effect.  "" if nothing fits.
    """
    blocks = list(_blocks(record))
    text = ""
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        if len((text + block).encode("utf-8")) + (0 if last else _NOTE) > room:
            left_out = f"<p>{len(blocks) - number} more left out: see results.json.</p>\n\n"
            return text + left_out if text else ""
        text += block
    return text


def _blocks(record: RunRecord) -> Iterator[str]:
    """The parts, most important first; the first is the verdict."""
    head = f"<h3>{_text(verdict_line(record))}</h3>\n\n"
    if record.trouble:
        head += f"<p><b>{_text(record.trouble)}</b></p>\n\n"
    yield head
    for first, others in by_cause(record.failures):
        more = f" and {counted(len(others), 'more case')}" if others else ""
        reason = f": {_text(first.reason)}" if first.reason else ""
        summary = f"{first.outcome} <code>{first.id}</code>{reason}{more}"
        yield _detail(summary, render_cause(first, others, record.head)[1:])
    for outcome, title in _LISTED.items():
        found = [case for case in record.cases if case.outcome is outcome]
        if found and not record.head.fails(outcome):
            yield _detail(f"{title}: {len(found)}", [case_line(case) for case in found])


def _detail(summary: str, lines: Iterable[str]) -> str:
    """A collapsed section.  Only a <pre> that begins a line may contain empty lines."""
    content = html.escape("\n".join(lines), quote=False)
    return f"<details><summary>{summary}</summary>\n\n<pre>\n{content}\n</pre>\n\n</details>\n\n"


def _text(text: str) -> str:
    return html.escape(one_line(text), quote=False)
