"""The report in Markdown, for a transition summary or a comment on GitHub or GitLab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.markdown import escaped, table
from conformance.report.matrix import story
from conformance.report.matrix.findings import Finding
from conformance.report.matrix.story import GroupedResult, Transition
from conformance.report.matrix.table import Matrix
from host.text import cut, first, one_line

# GitHub refuses transition summaries above 1 MiB.
_MOST = 30
_REASON = 300
_HEAD = ("kernel", "release", "judged as", "verdict")


def render_markdown(matrix: Matrix, findings: Sequence[Finding] = ()) -> str:
    """Render kernels, results by outcome, and changes."""
    lines = ["# user_events", "", _kernels(matrix)]
    for column in matrix.columns:
        if trouble := story.run_trouble(column):
            lines += [f"**{escaped(column.label)}**: {escaped(trouble)}", ""]
        for covered in column.run.covered:
            lines += [f"{escaped(column.label)} covered {escaped(str(covered))}", ""]
    failed = story.failed_results(matrix)
    lines += _section("Failed", failed, findings)
    if not failed:
        lines += [f"{story.nothing_failed(matrix).capitalize()}.", ""]
    for title, _, results in story.other_results(matrix):
        lines += _section(title, results, findings)
    if contradicted := story.contradictions(matrix):
        lines += ["## Contradicted switches", ""]
        for column, found in contradicted:
            here, dated = found.states
            states = f"{here} in {escaped(column.label)}, {dated} in its profile"
            lines.append(f"- {_code(found.switch)}: {states}: {escaped(found.says)}")
        lines.append("")
    changes = story.transitions(matrix)
    lines += ["## What changed", ""] if changes else []
    for transition in reversed(changes):
        lines += _transition(transition, findings)
    return "\n".join(lines).rstrip("\n") + "\n"


def _kernels(matrix: Matrix) -> str:
    counts = story.counted(matrix)
    rows = []
    for place, column in enumerate(matrix.columns):
        kernel = column.record.head.kernel
        facts = map(escaped, (column.label, kernel.release, kernel.profile))
        rows.append([*facts, f"**{column.verdict}**", *(str(each[place]) for _, each in counts)])
    return table([*_HEAD, *(name for name, _ in counts)], rows)


def _transition(transition: Transition, findings: Sequence[Finding]) -> list[str]:
    lines = [f"### {escaped(transition.earlier.label)} → {escaped(transition.later.label)}", ""]
    lines += [f"{transition.summary.capitalize()}.", "", *_list(transition.changes, findings)]
    if transition.switch_changes:
        lines += ["<details><summary>dated changes of the ABI</summary>", ""]
        for change in transition.switch_changes:
            commit = f" (“{escaped(change.switch.commit)}”)" if change.switch.commit else ""
            name = f"{change.verb} {_code(change.switch.name)}{change.when}"
            lines.append(f"- {name}: {change.switch.says}{commit}")
        lines += ["", "</details>", ""]
    return lines


def _section(title: str, found: Sequence[GroupedResult], findings: Sequence[Finding]) -> list[str]:
    return [f"## {title}", "", *_list(found, findings)] if found else []


def _list(found: Sequence[GroupedResult], findings: Sequence[Finding]) -> list[str]:
    items = first(["\n".join(_item(each, findings)) for each in found], _MOST, "- and {} more")
    return [*items, ""] if items else []


def _item(each: GroupedResult, findings: Sequence[Finding]) -> Iterator[str]:
    outcome, often, where = each.heading("→")
    reason = cut(one_line(each.reason), _REASON)
    parts = [f"- **{outcome}**", _code(each.group.name), often, escaped(where)]
    yield " ".join(filter(None, parts)) + (f": {escaped(reason)}" if reason else "")
    row = each.group.rows[0]
    if row.sentence:
        yield f"  <br>{escaped(row.sentence)}"
    if each.alike:
        yield f"  <br>also {escaped(story.also(each))}"
    for finding in findings:
        if finding.names(row.id):
            yield f"  <br>finding: {finding.title}"


def _code(name: str) -> str:
    """An id in a code span; ids have no backticks."""
    return f"`{one_line(name)}`"
