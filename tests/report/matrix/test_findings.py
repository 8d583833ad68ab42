"""docs/findings.md as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.discovery import all_cases
from conformance.report.matrix.findings import Finding, read_findings

TEXT = """\
# Findings

Of `a.nothing`.

## First, with `code`

Cases `write.one`, `write.some…` (modelled). `trace_events.c:f` is none.

## Second

Nothing.
"""


def test_findings_name_their_cases(tmp_path: Path) -> None:
    (tmp_path / "findings.md").write_text(TEXT)
    first, second = read_findings(tmp_path / "findings.md")
    assert (first.title, second.title) == ("First, with `code`", "Second")
    assert second.text == "Nothing."
    for id, named in {
        "write.one": True,
        "write.one.variant-1": True,
        "write.one_more": False,
        "write.something.x": True,
        "write.other": False,
    }.items():
        assert first.names(id) is named, id
        assert not second.names(id)


def test_links_to_other_pages_are_plain_text(tmp_path: Path) -> None:
    page = tmp_path / "findings.md"
    page.write_text("## One\n\nSee [the\nbug](behaviours.md#two), [mail](https://a.example/b).\n")
    (finding,) = read_findings(page)
    assert finding.text == "See the\nbug, [mail](https://a.example/b)."


def test_without_documentation_there_are_no_findings(tmp_path: Path) -> None:
    assert read_findings(tmp_path / "findings.md") == []


def test_the_documentation_of_the_suite_is_found() -> None:
    """The document exists and parses: otherwise the next test would test nothing."""
    assert read_findings()


@pytest.mark.parametrize("finding", read_findings(), ids=lambda finding: finding.title)
def test_findings_name_existing_cases(finding: Finding) -> None:
    ids = [each.id for each in all_cases()]
    if not finding.text.startswith(("Case `", "Cases `")):
        return
    variants = tuple(f"{id}." for id in ids)
    named = [name for name in (*finding.cases, *finding.beginnings) if name.startswith(variants)]
    assert named or any(map(finding.names, ids))
