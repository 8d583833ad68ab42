"""Known deviations: what they cover, what they must not cover, and errors in their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.abi.profile import profile_for
from conformance.expectations.condition import KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectations
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome

HERE = KernelContext("6.12.117", "6.12", switches=profile_for("6.12").switches)
ELSEWHERE = KernelContext("5.19.17", "5.19")
ENTRY = r"""
[[expectation]]
case = "status.header"
step = [2, 3]
field = "data"
pattern = 'Max: \d+'
when = "release >= 6.1"
reason = "the header shows a limit"
url = "https://example.org/thread"
fixed_by = "tracing/user_events: Drop the limit"
"""
COVERED = Mismatch(2, "data", "", "Max: 32767")


@pytest.fixture
def expectations(tmp_path: Path) -> Expectations:
    """The expectation of ENTRY."""
    return load(tmp_path, ENTRY)


def load(directory: Path, *documents: str) -> Expectations:
    """Load a directory with these files."""
    for number, document in enumerate(documents):
        (directory / f"file{number}.toml").write_text(document)
    return Expectations.load(directory)


def result(
    *mismatches: Mismatch,
    case_id: str = "status.header",
    outcome: Outcome = Outcome.FAIL,
    blame: Blame = Blame.KERNEL,
) -> CaseResult:
    """A result of the case of ENTRY."""
    return CaseResult(case_id, "status", "quick", outcome, blame, mismatches=mismatches)


@pytest.mark.parametrize("case_id", ["status.header", "status.header.persist"])
def test_a_covered_failure_becomes_xfail(expectations: Expectations, case_id: str) -> None:
    failed = result(COVERED, Mismatch(3, "data", "", "Max: 9"), case_id=case_id)
    judged = expectations.judge(HERE, failed)
    assert (judged.outcome, judged.blame) == (Outcome.XFAIL, Blame.KERNEL)
    assert judged.reason == (
        "the header shows a limit [https://example.org/thread]"
        ' (fixed by "tracing/user_events: Drop the limit")'
    )


@pytest.mark.parametrize(
    "other",
    [
        Mismatch(4, "data", "", "Max: 1"),
        Mismatch(2, "errno", "", "Max: 1"),
        Mismatch(2, "data", "", "Max: none"),
        Mismatch(2, "data", "", "Max: 1\nMin: 0"),
        Mismatch(2, "data", "", "was: Max: 1"),
    ],
    ids=str,
)
def test_one_uncovered_mismatch_keeps_the_failure(
    expectations: Expectations, other: Mismatch
) -> None:
    for mismatches in ((other,), (COVERED, other), (other, COVERED)):
        failed = result(*mismatches)
        assert expectations.judge(HERE, failed) is failed
        assert expectations.match(HERE, failed.id, mismatches) == ()


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(result(), id="no-mismatch"),
        pytest.param(result(COVERED, blame=Blame.CASE), id="blame-case"),
        pytest.param(result(COVERED, blame=Blame.MODEL), id="blame-model"),
        pytest.param(result(COVERED, outcome=Outcome.CRASH), id="crash"),
        pytest.param(result(COVERED, outcome=Outcome.TIMEOUT), id="timeout"),
        pytest.param(result(COVERED, outcome=Outcome.ERROR), id="error"),
        pytest.param(result(COVERED, case_id="status.header_size"), id="other-case"),
    ],
)
def test_other_results_are_not_excused(expectations: Expectations, kept: CaseResult) -> None:
    assert expectations.judge(HERE, kept) is kept


def test_memory_is_one_field_at_any_address(tmp_path: Path) -> None:
    entry = ENTRY.replace('"data"', '"memory"').replace(r"Max: \d+", "(01|03) 00 00 00")
    word = Mismatch(2, "memory a1 0x200010000000", "00 00 00 00", "01 00 00 00")
    assert len(load(tmp_path, entry).match(HERE, "status.header", [word])) == 1


def test_another_kernel_is_not_excused(expectations: Expectations) -> None:
    failed = result(COVERED)
    assert expectations.judge(ELSEWHERE, failed) is failed
    passed = result(outcome=Outcome.PASS, blame=Blame.NONE)
    assert expectations.judge(ELSEWHERE, passed) is passed


def test_a_missing_deviation_becomes_xpass(expectations: Expectations) -> None:
    judged = expectations.judge(HERE, result(outcome=Outcome.PASS, blame=Blame.NONE))
    assert judged.outcome is Outcome.FIXED
    assert judged.reason.startswith("expected and not seen: the header shows a limit")


def test_two_deviations_of_one_case_cover_together(tmp_path: Path) -> None:
    other = ENTRY.replace("[2, 3]", "7").replace("a limit", "a minimum")
    both = load(tmp_path, ENTRY, other)
    found = both.match(HERE, "status.header", [COVERED, Mismatch(7, "data", "", "Max: 1")])
    assert [each.reason for each in found] == [
        "the header shows a limit",
        "the header shows a minimum",
    ]
    assert len(both.match(HERE, "status.header", [COVERED])) == 1


@pytest.mark.parametrize(
    ("old", "new", "key", "message", "hint"),
    [
        ("[2, 3]", "-1", "expectation 1, step", "is -1", '"any"'),
        ("[2, 3]", "[]", "expectation 1, step", "is []", '"any"'),
        ("[2, 3]", "true", "expectation 1, step", "is True", '"any"'),
        ("[2, 3]", '"all"', "expectation 1, step", "is 'all'", '"any"'),
        (r"'Max: \d+'", "'('", "expectation 1, pattern", "is not a regular expression", "fix"),
        (">= 6.1", "about 6", "expectation 1, when", "is not a comparison", "release >= 6.1"),
        ('"data"', '"literal"', "expectation 1, field", "is 'literal'", "errno, value"),
        ("release >= 6.1", "switch == x", "expectation 1, when", "is not a dated switch", ""),
        ("https:", "see:", "expectation 1, url", "is 'see:", "https"),
        ('"status.header"', '"status"', "expectation 1, case", "is 'status'", "surface.name"),
        ("reason", "because", "expectation 1, reason", "is missing", "add reason"),
        ("field =", "# field =", "expectation 1, field", "is missing", "add field"),
        ('"status.header"', "7", "expectation 1, case", "is 7", "write a text"),
        ('"the header shows a limit"', '" "', "expectation 1, reason", "is ' '", "write a text"),
        ("[[expectation]]", "[expectation]", "expectation", "is not a list", "[[expectation]]"),
        ("[[expectation]]", "[[deviation]]", "deviation", "is not known", "[[expectation]]"),
        ("[[expectation]]", "[[expectation", "", "is not TOML", "syntax"),
    ],
)
def test_an_invalid_file_is_refused_with_file_key_and_hint(
    tmp_path: Path, old: str, new: str, key: str, message: str, hint: str
) -> None:
    assert old in ENTRY
    with pytest.raises(ExpectationError) as caught:
        load(tmp_path, ENTRY.replace(old, new, 1))
    assert caught.value.file == tmp_path / "file0.toml"
    assert caught.value.key == key
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").symlink_to("nowhere")
    with pytest.raises(ExpectationError, match=r"a\.toml: No such file"):
        Expectations.load(tmp_path)


def format_text(array: str, *, size: int = 20) -> str:
    """The format of an event with one array, as trace_events.c:f_show prints it."""
    return (
        "name: e\nID: 1500\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        f"\tfield:{array};\toffset:8;\tsize:{size};\tsigned:1;\n"
        '\nprint fmt: "m=%s", REC->m\n'
    )


@pytest.mark.parametrize(
    "observed",
    [
        format_text("char m[]"),
        format_text("char m[33935616]"),
        format_text("unsigned char m[-126]"),
        "\tfield:char m[];\toffset:8;\tsize:20;\tsigned:1;",
        "field:char m[34281344];\toffset:8;\tsize:20;\tsigned:1;",
    ],
    ids=["none", "large", "negative", "line", "stripped-line"],
)
@pytest.mark.parametrize("case_id", ["format.array_length", "format.array_length.char_20"])
def test_the_array_length_of_6_12_is_known(observed: str, case_id: str) -> None:
    shipped = Expectations.load()
    found = shipped.match(HERE, case_id, [Mismatch(3, "data", "m[20]", observed)])
    assert [each.case for each in found] == ["format.array_length"]
    assert shipped.match(ELSEWHERE, case_id, [Mismatch(3, "data", "m[20]", observed)]) == ()


@pytest.mark.parametrize(
    "observed",
    [format_text("char m"), format_text("char m[x]"), format_text("char m[1 2]"), "char m[]", ""],
    ids=["no-array", "letters", "two-numbers", "no-field", "empty"],
)
def test_only_the_number_of_an_array_may_be_wrong(observed: str) -> None:
    mismatch = Mismatch(3, "data", "m[20]", observed)
    assert Expectations.load().match(HERE, "format.array_length", [mismatch]) == ()
