"""junit.xml, read by another parser and validated by the schema of Jenkins."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from junitparser import xunit2

from conformance.report.export.junit import render_junit, write_junit
from conformance.results.case_result import CaseResult
from conformance.results.judging import settle
from conformance.results.outcome import Level, Outcome, SkipReason
from conformance.results.run import RunRecord
from tests.report.conftest import GOLDEN
from tests.report.samples import (
    UNHURRIED,
    case,
    contradicted,
    contradiction,
    failure,
    head,
    mixed,
    run,
    runs,
    wrong,
)

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}

SCHEMA = xmlschema.XMLSchema(GOLDEN / "junit-10.xsd")
"""That of Jenkins' xunit plugin, as pytest tests its own reports with it; licence in the file."""


def document(*records: RunRecord) -> Element:
    """The root of a valid document."""
    text = render_junit(records)
    SCHEMA.validate(text)
    return ElementTree.fromstring(text)


def entries(record: RunRecord) -> list[Element]:
    """The entries of the cases."""
    *found, last = document(record).findall(".//testcase")
    assert last.get("name") == "uevt.run"
    return found


def attribute(root: Element, path: str, name: str) -> str | None:
    """The attribute of an element that exists."""
    found = root.find(path)
    assert found is not None, path
    return found.get(name)


def deviation() -> CaseResult:
    return wrong("a.b", outcome=Outcome.CHANGED, level=Level.BEHAVIOUR)


@UNHURRIED
@given(st.lists(runs(), min_size=1, max_size=2))
def test_any_runs_are_valid_with_correct_counts(records: list[RunRecord]) -> None:
    root = document(*records)
    for suite, record in zip(root.findall("testsuite"), records, strict=True):
        names = [each.get("name") for each in suite.findall("testcase")]
        assert names[: len(record.cases)] == [each.id for each in record.cases]
        for counted, tag in COUNTED.items():
            assert int(suite.attrib[counted]) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.attrib["tests"]) == len(names)
    for counted in ("tests", "failures", "errors"):
        assert int(root.attrib[counted]) == sum(int(suite.attrib[counted]) for suite in root)


def test_another_parser_finds_ids_and_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    write_junit(mixed(), path)
    (suite,) = xunit2.JUnitXml.fromfile(str(path))
    found = {each.name: each for each in suite}
    assert found["delete.busy"].result[0].type == "CRASH"
    assert found["delete.busy"].classname == "delete"
    assert found["enable.bit_63"].is_passed
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (12, 3, 1, 2)
    root = ElementTree.parse(path).getroot()
    assert attribute(root, ".//property[@name='kernel.release']", "value") == "6.12.117"


def test_the_text_of_a_failure_is_its_evidence() -> None:
    root = ElementTree.fromstring(render_junit([mixed()]))
    text = root.findtext(".//testcase[@name='registration.size_short']/failure") or ""
    assert "ioctl(fd, DIAG_IOCSREG, {size=4" in text
    assert "\\x1b[31muser_events: \\x00\xff" in text


def test_an_entry_has_the_place_and_the_sentence_of_its_case() -> None:
    root = ElementTree.fromstring(render_junit([mixed()]))
    (entry,) = root.findall(".//testcase[@file]")
    assert entry.attrib.pop("file") == failure().file
    assert entry.attrib.pop("line") == "42"
    assert (entry.findtext("system-out") or "").startswith(failure().sentence)
    # Besides these attributes the document is as Jenkins' schema demands.
    SCHEMA.validate(ElementTree.tostring(root, encoding="unicode"))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (run(case("write.a"), selected=3, note="interrupted"), "1 of 3 cases ended: interrupted"),
        (
            run(case("write.a"), contradictions=(contradiction(),)),
            "the kernel contradicts its profile in: ebadf_when_disabled; see --abi",
        ),
    ],
    ids=["incomplete", "contradicted"],
)
def test_a_problem_of_the_run_is_an_error_entry(record: RunRecord, message: str) -> None:
    path = ".//testcase[@name='uevt.run']/error"
    assert attribute(document(record), path, "message") == message


def test_measured_switches_are_shown_for_run_and_case() -> None:
    root = document(contradicted())
    switches = attribute(root, ".//property[@name='contradicted']", "value")
    assert switches == "ebadf_when_disabled=no persist=yes"
    output = root.findtext(".//testcase[@name='write.a']/system-out")
    shown = "judged with measured switches: ebadf_when_disabled, persist"
    assert output == f"level: contract\n{shown}"


def test_a_weak_deviation_passes_and_says_what_differs() -> None:
    (entry,) = entries(run(deviation()))
    assert [each.tag for each in entry] == ["system-out"]
    assert entry.findtext("system-out") == (
        "level: behaviour\n"
        "CHANGED (undocumented behaviour): step 2, errno: allowed EINVAL, observed 0"
    )


def test_the_line_of_the_run_makes_it_a_failure() -> None:
    (entry,) = entries(run(deviation(), head=head(fail_on=Level.BEHAVIOUR)))
    assert [each.tag for each in entry] == ["failure", "system-out"]
    text = entry.findtext("failure") or ""
    assert text.startswith("CHANGED a.b (undocumented behaviour, 0.00 s)\n")


def test_a_fixed_bug_passes_and_is_named() -> None:
    reason = "this kernel does not have the known bug eprobe-sign: a sign is lost"
    (entry,) = entries(run(case("a.b", Outcome.FIXED, reason=reason, bug="eprobe-sign")))
    assert entry.findtext("system-out") == f"level: contract\nFIXED: {reason}"


def test_a_kernel_without_user_events_is_skipped() -> None:
    unbuilt = case("write.a", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
    for record, names in (
        (run(not_built=True), ["uevt.run"]),
        (run(unbuilt, not_built=True), ["write.a", "uevt.run"]),
    ):
        root = document(record)
        found = [(each.get("name"), each[0].tag) for each in root.findall(".//testcase")]
        assert found == [(name, "skipped") for name in names]
        assert attribute(root, ".//property[@name='verdict']", "value") == "NOT_BUILT"


def test_a_self_check_has_no_verdict() -> None:
    root = document(run(case("a.b"), head=head(self_check=True)))
    assert root.find(".//property[@name='verdict']") is None


def test_classes_of_several_kernels_are_unique() -> None:
    root = document(run(case("write.a")), run(case("write.a")))
    found = [(each.get("classname"), each.get("name")) for each in root.findall(".//testcase")]
    assert found == [
        *(("6.12.write", "write.a"), ("6.12.uevt", "uevt.run")),
        *(("6.12-2.write", "write.a"), ("6.12-2.uevt", "uevt.run")),
    ]
    assert [each.get("name") for each in root] == ["uevt 6.12", "uevt 6.12-2"]


LOST = case("write.a", Outcome.ERROR, reason="QEMU died")


@pytest.mark.parametrize(
    ("first", "second", "tags"),
    [
        (LOST, Outcome.PASS, ["flakyError"]),
        (LOST, Outcome.XFAIL, ["skipped", "flakyError"]),
        (LOST, Outcome.FAIL, ["failure", "rerunError"]),
        (LOST, Outcome.ERROR, ["error", "rerunError"]),
        (case("write.a", Outcome.CRASH), Outcome.CRASH, ["failure", "rerunFailure"]),
        (case("write.a", Outcome.CRASH), Outcome.ERROR, ["failure", "rerunError"]),
        (case("write.a", Outcome.CRASH), Outcome.PASS, ["failure"]),
    ],
)
def test_the_other_run_of_a_case_has_its_element(
    first: CaseResult, second: Outcome, tags: list[str]
) -> None:
    (entry,) = entries(run(settle(first, case("write.a", second))))
    assert [each.tag for each in entry if each.tag != "system-out"] == tags


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (case("a.b", Outcome.SKIP), f"host_tool: {SkipReason.HOST_TOOL.sentence}"),
        (case("a.b", Outcome.XFAIL, reason="the length is garbage"), "the length is garbage"),
    ],
)
def test_a_skipped_entry_has_outcome_and_reason(result: CaseResult, message: str) -> None:
    (skipped,) = document(run(result)).findall(".//skipped")
    assert skipped.attrib == {"type": result.outcome.value, "message": message}
