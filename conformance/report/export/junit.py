"""junit.xml: runs in JUnit's xunit2 form, for Jenkins, GitLab and others.

The schema is that of Jenkins' xunit plugin (junit-10.xsd), with ``file`` and ``line`` of a case as
in pytest's ``xunit1``, which GitLab reads.  pytest's own ``--junitxml`` has neither case ids nor
separate CRASH and ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from msgspec import to_builtins

from conformance.report.export.ktap import remarks
from conformance.report.failure import render_failure
from conformance.results.case_result import CaseResult, Rerun
from conformance.results.outcome import Outcome
from conformance.results.run import RunHead, RunRecord, self_check_of, with_names
from host.files import write_atomically
from host.text import one_line

RUN_CLASS = "uevt"
RUN_NAME = "uevt.run"
"""Class and name of the entry for the run as a whole."""

# Of outcomes other than failures.
_TAGS = {Outcome.ERROR: "error", Outcome.XFAIL: "skipped", Outcome.SKIP: "skipped"}
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit(record: RunRecord, path: Path) -> None:
    """Write a run as JUnit XML, atomically.  Raises OSError."""
    write_atomically(path, render_junit([record]))


def render_junit(records: Iterable[RunRecord]) -> str:
    """Runs as ``testsuite`` elements in ``testsuites``.

    With several runs class names begin with the kernel, since readers identify entries by them.
    """
    runs = with_names(records)
    root = Element("testsuites", {"name": "uevt"})
    for name, record in runs:
        _add_suite(root, record, name, f"{one_line(name)}." if len(runs) > 1 else "")
    root.set("time", f"{sum(record.duration_s for _, record in runs):.3f}")
    root.set("tests", str(len(root.findall(".//testcase"))))
    # The schema has no attribute "skipped" here.
    for attribute in ("failures", "errors"):
        root.set(attribute, str(len(root.findall(f".//{_COUNTED[attribute]}"))))
    ElementTree.indent(root, " ")
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"


def _add_suite(root: Element, record: RunRecord, name: str, prefix: str) -> None:
    suite = SubElement(root, "testsuite", {"name": f"uevt {one_line(name)}"})
    properties = SubElement(suite, "properties")
    for key, value in _properties(record).items():
        SubElement(properties, "property", {"name": one_line(key), "value": one_line(value)})
    for case in record.cases:
        _add_case(suite, case, prefix, record.head)
    entry = _entry(suite, prefix + RUN_CLASS, RUN_NAME, 0.0)
    if why := one_line(record.judged_nothing):
        kind = record.verdict.value if record.not_built else Outcome.SKIP.value
        SubElement(entry, "skipped", {"type": kind, "message": why})
    elif record.trouble:
        SubElement(entry, "error", {"type": "ERROR", "message": one_line(record.trouble)})
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, tag in _COUNTED.items():
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{record.duration_s:.3f}")
    suite.set("timestamp", one_line(record.head.started))


def _properties(record: RunRecord) -> dict[str, str]:
    kernel = {f"kernel.{key}": value for key, value in to_builtins(record.head.kernel).items()}
    kernel["kernel.patches"] = " ".join(each.name for each in record.head.kernel.patches)
    host = {f"host.{key}": value for key, value in record.head.host.items()}
    run = {
        "suite": record.head.suite,
        "tier": record.head.tier,
        "selection": record.head.selection,
        "verdict": "" if record.head.self_check else record.verdict.value,
        "self_check": self_check_of(record) if record.head.self_check else "",
        "fail_on": record.head.fail_on.value,
        "note": record.note,
        "contradicted": " ".join(each.override for each in record.contradicted),
    }
    return {key: str(value) for key, value in {**kernel, **host, **run}.items() if value}


def _add_case(suite: Element, case: CaseResult, prefix: str, head: RunHead) -> None:
    entry = _entry(suite, prefix + case.surface, case.id, case.duration_s)
    if case.file:
        entry.set("file", case.file)
        entry.set("line", str(case.line))
    if tag := _TAGS.get(case.outcome, "failure" if head.fails(case.outcome) else ""):
        message = one_line(case.explanation or case.difference)
        element = SubElement(entry, tag, {"type": case.outcome.value, "message": message})
        if tag != "skipped":
            element.text = "\n".join(render_failure(case, head))
    # The schema has no properties here.
    output = [one_line(case.sentence), f"level: {case.level}"]
    output += [] if head.fails(case.outcome) else remarks(case)
    SubElement(entry, "system-out").text = "\n".join(filter(None, output))
    if case.rerun and (other := _tag_of_rerun(case, case.rerun, head)):
        attributes = {"type": case.rerun.outcome.value, "message": one_line(case.rerun.reason)}
        SubElement(entry, other, attributes)


def _tag_of_rerun(case: CaseResult, rerun: Rerun, head: RunHead) -> str:
    """The element for the other run of a case, as Surefire writes it; "" if it went well.

    "flaky" is for cases that finally passed; others have a failure or error, and a "rerun" for each
    further one.
    """
    if not head.fails(rerun.outcome):
        return ""
    kind = "Error" if rerun.outcome is Outcome.ERROR else "Failure"
    return f"{'rerun' if head.fails(case.outcome) else 'flaky'}{kind}"


def _entry(suite: Element, surface: str, name: str, time: float) -> Element:
    attributes = {"classname": surface, "name": name, "time": f"{time:.3f}"}
    return SubElement(suite, "testcase", attributes)
