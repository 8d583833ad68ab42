"""docs/cases.md is up to date and counts every case."""

from __future__ import annotations

from conformance.cases.discovery import case_modules
from conformance.report.specification import level_table
from conformance.report.specification.page import surfaces
from tests.cases.variants import all_variants


def test_the_committed_file_is_up_to_date() -> None:
    fresh = level_table.render(surfaces(case_modules()))
    assert level_table.FILE.read_text(encoding="utf-8") == fresh, "stale: run `make docs`"


def test_every_variant_is_counted() -> None:
    variants = all_variants()
    last = level_table.render(surfaces(case_modules())).splitlines()[-1]
    cases = len({each.case.id for each in variants})
    assert last.endswith(f"| {cases:,} ({len(variants):,}) |")
