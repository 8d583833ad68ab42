"""junit.xml: read by a foreign parser, and of the shape that Jenkins validates."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from junitparser import xunit2

from conformance.outcome import Outcome
from conformance.report.junit import render_junit, write_junit
from conformance.report.record import RunRecord
from tests.report.samples import UNHURRIED, case, contradicted, mixed, run, runs

# The elements and attributes of junit-10.xsd (Jenkins xunit plugin) that we may use:
# tag -> (required attributes, further attributes, children).
RESULT = (set[str](), {"type", "message"}, set[str]())
SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "flakyError", "flakyFailure", "rerunError", "system-out"},
    ),
    "system-out": (set(), set(), set()),
    "skipped": RESULT,
    "error": RESULT,
    "failure": RESULT,
    "flakyError": ({"type"}, {"message"}, {"stackTrace", "system-out", "system-err"}),
}


def check_shape(element: ElementTree.Element) -> None:
    """Assert that an element and all below it are as the schema has them."""
    required, further, children = SHAPE[element.tag]
    assert required <= set(element.attrib) <= required | further, element.tag
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        check_shape(child)


@UNHURRIED
@given(runs())
def test_any_run_is_well_formed_and_of_the_right_shape(record: RunRecord) -> None:
    root = ElementTree.fromstring(render_junit(record))
    check_shape(root)
    entries = root.findall("testsuite/testcase")
    assert [each.get("name") for each in entries][: len(record.cases)] == [
        each.id for each in record.cases
    ]
    suite = root.find("testsuite")
    assert suite is not None
    for attribute, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        assert int(suite.attrib[attribute]) == len(root.findall(f".//{tag}"))
    assert int(suite.attrib["tests"]) == len(entries)


def test_a_foreign_parser_finds_ids_and_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    write_junit(mixed(), path)
    (suite,) = xunit2.JUnitXml.fromfile(str(path))
    found = {each.name: each for each in suite}
    kinds = {
        name: [type(result).__name__ for result in each.result] for name, each in found.items()
    }
    assert kinds == {
        "registration.empty_name": [],
        "registration.size_short": ["Failure"],
        "enable.bit_63": [],
        "delete.busy": ["Failure"],
        "write.storm": ["Failure"],
        "status.text": ["Failure"],
        "format.array_length": ["Skipped"],
        "layouts.compat": ["Skipped"],
        "lifetime.fork": ["Error"],
    }
    assert found["delete.busy"].result[0].type == "CRASH"
    assert found["delete.busy"].classname == "delete"
    assert found["enable.bit_63"].is_passed
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (9, 4, 1, 2)
    release = ElementTree.parse(path).find(".//property[@name='kernel.release']")
    assert release is not None
    assert release.get("value") == "6.12.117"


def test_the_text_of_a_failure_is_its_evidence() -> None:
    root = ElementTree.fromstring(render_junit(mixed()))
    text = root.findtext(".//testcase[@name='registration.size_short']/failure") or ""
    assert "ioctl(fd 0, DIAG_IOCSREG, size=4" in text
    assert "\\x1b[31mwrite_index 0\\x00\xff" in text


def test_a_first_run_lost_to_the_host_is_kept_as_flaky() -> None:
    root = ElementTree.fromstring(render_junit(mixed()))
    (flaky,) = root.findall(".//testcase[@name='enable.bit_63']/flakyError")
    assert flaky.attrib == {"type": "ERROR", "message": "QEMU was ended by signal 9 (SIGKILL)"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        pytest.param(
            run(case("write.a"), selected=3, note="interrupted"),
            "1 of 3 cases ended: interrupted",
            id="incomplete",
        ),
        pytest.param(
            run(case("write.a", adapted=("nonspaced_match",))),
            "judged with measured switches, not the profile's: nonspaced_match",
            id="adapted",
        ),
    ],
)
def test_trouble_of_the_run_is_an_error_of_its_own(record: RunRecord, message: str) -> None:
    root = ElementTree.fromstring(render_junit(record))
    error = root.find(".//testcase[@name='uevt.run']/error")
    assert error is not None
    assert error.get("message") == message


def test_measured_switches_are_told_of_run_and_case() -> None:
    root = ElementTree.fromstring(render_junit(contradicted()))
    found = root.find(".//property[@name='contradicted']")
    assert found is not None
    assert found.get("value") == "ebadf_when_disabled=no persist=yes"
    said = root.findtext(".//testcase[@name='write.a']/system-out")
    assert said == "judged with measured switches: ebadf_when_disabled, persist"


def test_a_kernel_without_user_events_has_no_cases() -> None:
    root = ElementTree.fromstring(render_junit(run(not_built=True)))
    assert root.findall(".//testcase") == []
    verdict = root.find(".//property[@name='verdict']")
    assert verdict is not None
    assert verdict.get("value") == "NOT_BUILT"


def test_xfail_is_told_with_its_reason() -> None:
    record = run(case("format.length", Outcome.XFAIL, reason="the length is garbage"))
    skipped = ElementTree.fromstring(render_junit(record)).find(".//skipped")
    assert skipped is not None
    assert skipped.attrib == {"type": "XFAIL", "message": "the length is garbage"}
