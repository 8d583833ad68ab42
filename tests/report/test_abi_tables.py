"""docs/abi.md is up to date and complete."""

from __future__ import annotations

import pytest

from conformance.abi.profile import Generation
from conformance.abi.switches import SWITCHES
from conformance.cases.discovery import all_cases
from conformance.report.specification import abi_tables


def test_the_committed_file_is_up_to_date() -> None:
    fresh = abi_tables.render(all_cases())
    assert abi_tables.FILE.read_text(encoding="utf-8") == fresh, "stale: run `make docs`"


def test_every_table_has_rows_of_one_length() -> None:
    tables: list[list[str]] = [[]]
    for line in abi_tables.render(all_cases()).splitlines():
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    sizes = [len(table) - 2 for table in tables if table]
    bugs = sum(switch.bug for switch in SWITCHES)
    assert sizes[:3] == [len(SWITCHES) - bugs, bugs, len(Generation)]
    for table in tables:
        assert len({line.replace(r"\|", "").count("|") for line in table}) <= 1


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain text", "plain text"),
        ("user_event_mm_dup() *now*", r"user\_event\_mm\_dup() \*now\*"),
        ("a|b <c> [d]", r"a\|b \<c> \[d\]"),
        ("`format` of a_b", r"`format` of a\_b"),
        ("`a|b_c`", r"`a\|b_c`"),
        ("one ` alone", r"one \` alone"),
        ("a\\b", r"a\\b"),
    ],
)
def test_text_is_no_markup(text: str, escaped: str) -> None:
    assert abi_tables._text(text) == escaped
