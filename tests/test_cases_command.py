"""`uevt cases`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host.text import WIDTH
from tests.conftest import Uevt

ROOT = Path(__file__).resolve().parent.parent


def test_a_listed_case_is_where_it_says(uevt: Uevt) -> None:
    (case,) = json.loads(uevt("cases", "-k", "write.returns_all_bytes", "--json").out)
    line = (ROOT / case["file"]).read_text().splitlines()[case["line"] - 1]
    assert line.startswith("def test_returns_all_bytes(")
    assert case["variants"][0] == "write.returns_all_bytes.u8"
    assert (case["level"], case["tier"]) == ("behaviour", "quick")
    assert case["sentence"].endswith(".")


def test_lines_fit_and_end_with_the_number(uevt: Uevt) -> None:
    *lines, last = uevt("cases").out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert last.endswith(" with variants")


def test_one_case_is_listed_with_its_variants(uevt: Uevt) -> None:
    shown = uevt("cases", "-k", "tasks.later_thread_shares").out
    assert "tasks.later_thread_shares.memory, tasks.later_thread_shares.thread," in shown


@pytest.mark.parametrize(
    ("words", "surface", "selected"),
    [
        (["--kernel", "6.1"], "enable", False),
        (["--kernel", "6.12"], "enable", True),
        (["--abi", "merge-window"], "bpf_context", True),
        (["--kernel", "6.12"], "bpf_context", False),
    ],
)
def test_a_kernel_has_the_cases_of_its_abi(
    uevt: Uevt, words: list[str], surface: str, selected: bool
) -> None:
    found = json.loads(uevt("cases", *words, "--json").out)
    assert any(case["id"].partition(".")[0] == surface for case in found) is selected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-k", "no_such_case"], "no case matches -k"),
        (["-k", "a b"], "is no expression"),
        (["-k", "not " * 3000 + "a"], "is no expression"),
        (["--kernel", "6.21"], "unknown kernel"),
        (["--kernel", "mainline"], "name a release: --abi"),
        (["--abi", "nonsense"], "nonsense"),
    ],
)
def test_what_selects_nothing_is_a_usage_error(uevt: Uevt, words: list[str], says: str) -> None:
    assert says in uevt("cases", *words, code=2).err
