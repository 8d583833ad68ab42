"""What each format makes of each outcome."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from conformance.report.export.junit import render_junit
from conformance.report.export.kcidb import Sender, render_kcidb
from conformance.report.export.ktap import render_ktap
from conformance.report.export.tmt import render_tmt
from tests.report.export.ktap_reader import read_ktap
from tests.report.samples import mixed

# Case: KTAP, JUnit, KCIDB, tmt.  The run as a whole has an entry of its own.
OUTCOMES = {
    "registration.empty_name": ("ok", "", "PASS", "pass"),
    "registration.size_short": ("not ok", "failure", "FAIL", "fail"),
    "enable.bit_63": ("ok", "", "PASS", "pass"),
    "delete.busy": ("not ok CRASH", "failure", "FAIL", "fail"),
    "write.storm": ("not ok TIMEOUT", "failure", "FAIL", "fail"),
    "status.text": ("ok", "", "PASS", "pass"),
    "format.array_length": ("ok XFAIL", "skipped", "FAIL", "pass"),
    "grammar.order": ("ok", "", "PASS", "info"),
    "filters.caret": ("ok", "", "PASS", "info"),
    "layouts.compat": ("ok SKIP", "skipped", "SKIP", "skip"),
    "lifetime.fork": ("not ok ERROR", "error", "MISS", "error"),
}
KTAP, JUNIT, KCIDB, TMT = (
    {name: row[place] for name, row in OUTCOMES.items()} for place in range(4)
)


def test_ktap() -> None:
    leaves = {each.name: each for each in read_ktap(render_ktap([mixed()])).leaves()}
    shown = {
        name: f"{'ok' if each.ok else 'not ok'} {each.directive}".strip()
        for name, each in leaves.items()
    }
    assert shown == KTAP | {"uevt.run": "ok"}
    assert leaves["layouts.compat"].detail == (
        "host_tool: a program that these cases need is missing on the host"
    )
    failed = leaves["registration.size_short"].diagnostics
    assert "# FAIL registration.size_short (contract, 0.12 s)" in failed
    assert leaves["grammar.order"].diagnostics == [
        "# CHANGED (undocumented behaviour): step 2, errno: allowed EINVAL, observed 0"
    ]


def test_junit() -> None:
    entries = ElementTree.fromstring(render_junit([mixed()])).findall(".//testcase")
    tags = {"failure", "error", "skipped"}
    found = {each.get("name"): [part.tag for part in each if part.tag in tags] for each in entries}
    assert found == {name: [tag] if tag else [] for name, tag in JUNIT.items()} | {"uevt.run": []}


def test_kcidb() -> None:
    tests = json.loads(render_kcidb([mixed()], Sender("mine")))["tests"]
    found = {each["path"].removeprefix("user_events."): each["status"] for each in tests}
    assert found == KCIDB | {"user_events": "FAIL"}


def test_tmt() -> None:
    found = {each["name"]: each["result"] for each in json.loads(render_tmt([mixed()]))}
    assert found == {f"/{name}": result for name, result in TMT.items()} | {"/": "fail"}
