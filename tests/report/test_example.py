"""docs/example is what the code makes of the runs there, and shows cases that exist."""

from __future__ import annotations

from conformance.cases.discovery import all_cases
from conformance.report.example import EXAMPLE, SEEDED, forms
from conformance.results.results_json import NAME, read_results


def test_every_form_is_current() -> None:
    found = dict(forms())
    stale = [file for file, text in found.items() if file.read_text(encoding="utf-8") != text]
    assert stale == [], "run make docs"
    others = {file for file in EXAMPLE.rglob("*") if file.is_file()} - found.keys()
    assert [file.name for file in others] == ["report.png"]


def test_the_seeded_bug_is_found_by_a_case_of_today() -> None:
    record = read_results(EXAMPLE / SEEDED / NAME)
    failed = {case.id for case in record.cases if record.head.fails(case.outcome)}
    assert "enable.fork_of_several_words" in failed
    (patch,) = record.head.kernel.patches
    assert patch.name == "fork_copies_one.patch"


def test_sentences_are_those_of_the_cases() -> None:
    """Otherwise run make example."""
    today = {case.id: case.sentence for case in all_cases()}
    for case in read_results(EXAMPLE / SEEDED / NAME).cases:
        name = case.id
        while name not in today:
            name = name.rpartition(".")[0]
        assert case.sentence == today[name]
