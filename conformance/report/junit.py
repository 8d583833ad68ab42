"""junit.xml: the run in JUnit's xunit2 form, as Jenkins, GitLab and others read it.

The shape is that of Jenkins' xunit plugin (junit-10.xsd), pytest's ``xunit2``.  pytest's
own ``--junitxml`` knows neither case ids nor the difference between CRASH and ERROR.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from conformance.outcome import UNEXPECTED, CaseResult, Outcome, Which, encode
from conformance.report.failure import adapted_line, render_failure
from conformance.report.files import write_atomically
from conformance.report.record import RunRecord
from conformance.report.text import one_line

NAME = "junit.xml"
RUN_CLASS = "uevt"
RUN_NAME = "uevt.run"
"""Class and name of the entry for trouble that no case tells."""

_TAGS = {
    **dict.fromkeys(UNEXPECTED, "failure"),
    Outcome.ERROR: "error",
    Outcome.XFAIL: "skipped",
    Outcome.SKIP: "skipped",
}


def write_junit(record: RunRecord, path: Path) -> None:
    """Replace ``path`` by the run in JUnit XML.  Raises OSError."""
    write_atomically(path, render_junit(record))


def render_junit(record: RunRecord) -> str:
    """The run as one ``testsuite`` in ``testsuites``, ending with a newline."""
    trouble = one_line(record.trouble)
    counts = {
        "tests": len(record.cases) + bool(trouble),
        "failures": record.count(*UNEXPECTED),
        "errors": record.count(Outcome.ERROR) + bool(trouble),
    }
    totals = {name: str(count) for name, count in counts.items()}
    time = f"{record.duration_s:.3f}"
    root = ElementTree.Element("testsuites", {"name": "uevt", "time": time, **totals})
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {
            "name": f"uevt {one_line(record.head.kernel.id)}",
            **totals,
            "skipped": str(record.count(Outcome.SKIP, Outcome.XFAIL)),
            "time": time,
            "timestamp": record.head.started,
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(record).items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": one_line(value)})
    for case in record.cases:
        _add_case(suite, case)
    if trouble:
        entry = _entry(suite, RUN_CLASS, RUN_NAME, 0.0)
        ElementTree.SubElement(entry, "error", {"type": "ERROR", "message": trouble})
    ElementTree.indent(root, " ")
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"


def _properties(record: RunRecord) -> dict[str, str]:
    kernel = {f"kernel.{key}": value for key, value in encode(record.head.kernel).items()}
    host = {f"host.{key}": value for key, value in record.head.host.items()}
    run = {
        "suite": record.head.suite,
        "verdict": record.verdict.value,
        "note": record.note,
        "contradicted": " ".join(each.override for each in record.contradictions),
    }
    return {key: str(value) for key, value in {**kernel, **host, **run}.items() if value}


def _add_case(suite: ElementTree.Element, case: CaseResult) -> None:
    entry = _entry(suite, case.surface, case.id, case.duration_s)
    tag = _TAGS.get(case.outcome)
    if tag:
        message = one_line(case.reason or "; ".join(str(each) for each in case.mismatches))
        told = ElementTree.SubElement(entry, tag, {"type": case.outcome.value, "message": message})
        if tag != "skipped":
            told.text = "\n".join(render_failure(case))
    if case.adapted:
        note = ElementTree.SubElement(entry, "system-out")
        note.text = one_line(adapted_line(case))
    if case.rerun and case.rerun.of is Which.FIRST:
        ElementTree.SubElement(
            entry,
            "flakyError",
            {"type": case.rerun.outcome.value, "message": one_line(case.rerun.reason)},
        )


def _entry(suite: ElementTree.Element, surface: str, name: str, time: float) -> ElementTree.Element:
    attributes = {"classname": surface, "name": name, "time": f"{time:.3f}"}
    return ElementTree.SubElement(suite, "testcase", attributes)
