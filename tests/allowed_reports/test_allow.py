"""Allow-listed kernel reports: coverage, expiry, and errors in their files."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from conformance.allowed_reports.condition import KernelContext
from conformance.allowed_reports.rules import Allowed, RuleError
from conformance.results.case_result import Report

HERE = KernelContext("6.12.117", "6.12")
TODAY = date(2026, 11, 22)
RULE = r"""
[[allow]]
kind = "warn"
fingerprint = "warn:perf_trace_buf_alloc/user_event_perf"
pattern = 'WARNING: .*trace_event_perf\.c.*'
case = "perf.too_much"
when = "release >= 6.1"
reason = "perf warns about it"
url = "https://example.org/thread"
expires = 2026-11-22
"""
TITLE = "WARNING: CPU: 0 PID: 1 at kernel/trace/trace_event_perf.c:405 perf_trace_buf_alloc"
PRINT = "warn:perf_trace_buf_alloc/user_event_perf/user_events_write_core"
SEEN = Report("warn", TITLE, PRINT)


def load(directory: Path, text: str, today: date = TODAY) -> Allowed:
    (directory / "rules.toml").write_text(text)
    return Allowed.load(today, directory)


def excused(
    allowed: Allowed,
    report: Report = SEEN,
    case: str = "perf.too_much",
    context: KernelContext = HERE,
) -> str:
    (found,) = allowed.excuse(context, case, [report])
    return found.allowed


def test_a_covered_report_names_its_rule(tmp_path: Path) -> None:
    allowed = load(tmp_path, RULE)
    rule = "perf warns about it [https://example.org/thread] until 2026-11-22"
    assert excused(allowed) == rule
    assert excused(allowed, case="perf.too_much.twice") == rule


def test_any_other_report_is_not_covered(tmp_path: Path) -> None:
    allowed = load(tmp_path, RULE)
    assert not excused(allowed, case="perf.too_much_else")
    assert not excused(allowed, context=KernelContext("5.19", "5.19"))
    assert not excused(allowed, Report("bug", TITLE, PRINT))
    assert not excused(allowed, Report("warn", TITLE + "\nx", PRINT))
    assert not excused(allowed, Report("warn", "WARNING: elsewhere", PRINT))
    other = "warn:perf_trace_buf_alloc/user_event_perf_more"
    assert not excused(allowed, Report("warn", TITLE, other))


def test_fingerprint_or_pattern_is_enough(tmp_path: Path) -> None:
    lines = RULE.splitlines()
    for left_out in ("pattern", "fingerprint"):
        kept = "\n".join(line for line in lines if not line.startswith(left_out))
        assert excused(load(tmp_path, kept))


@pytest.mark.parametrize(
    ("change", "key", "what"),
    [
        (('kind = "warn"', 'kind = "warning"'), "kind", "is 'warning'"),
        (('kind = "warn"', 'kind = "oops"'), "kind", "is 'oops'"),
        (('kind = "warn"', 'kind = "panic"'), "kind", "is 'panic'"),
        (('kind = "warn"', 'kind = "out_of_memory"'), "kind", "is 'out_of_memory'"),
        (('kind = "warn"', 'kind = "bug"'), "fingerprint", "is not of a bug"),
        (("release >= 6.1", "kernel >= 6.1"), "when", "'kernel' is not one of"),
        (("'WARNING: .*trace", "'WARNING: (.*trace"), "pattern", "is not a regular expression"),
        (('"perf warns about it"', '" "'), "reason", "is ' '"),
        (("url =", "link ="), "allow 1, url", "is missing"),
        (("https:", "see:"), "url", "is 'see:"),
        (("perf.too_much", "perf"), "case", "is 'perf'"),
        (("expires = 2026-11-22", ""), "expires", "is missing"),
        (("expires = 2026-11-22", 'expires = "never"'), "expires", "is 'never'"),
        (("expires = 2026-11-22", "expires = 2026-11-22T00:00:00"), "expires", "datetime"),
        (("[[allow]]", "[allow]"), "allow", "is not a list of tables"),
        (("[[allow]]", "[[alow]]"), "alow", "is not known"),
        (("[[allow]]", "[[allow"), "", "is not TOML"),
    ],
)
def test_an_invalid_rule_is_refused_with_its_key(
    tmp_path: Path, change: tuple[str, str], key: str, what: str
) -> None:
    with pytest.raises(RuleError) as caught:
        load(tmp_path, RULE.replace(*change))
    assert "rules.toml" in str(caught.value)
    assert key in caught.value.key
    assert what in str(caught.value)
    assert caught.value.hint


def test_fingerprint_or_pattern_is_required(tmp_path: Path) -> None:
    kept = [line for line in RULE.splitlines() if not line.startswith(("pattern", "fingerp"))]
    with pytest.raises(RuleError, match="fingerprint: is missing"):
        load(tmp_path, "\n".join(kept))


def test_an_expired_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="was 2026-11-22: perf warns about it") as caught:
        load(tmp_path, RULE, date(2026, 11, 23))
    assert "remove the rule" in caught.value.hint


def test_no_rule_of_the_suite_has_expired() -> None:
    Allowed.load(datetime.now(UTC).date())
