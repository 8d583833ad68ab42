"""Runs as a KCIDB document, the kernel community's database of results, schema 5.3.

kcidb-io's schema defines the statuses.  Ours map to them as follows:

- FAIL, the tested code is faulty: a deviation that fails the run, CRASH and TIMEOUT; also XFAIL,
  which an incident of an issue marks as known.
- PASS: PASS; a deviation below the level that fails the run, which ``misc`` has; FIXED, with an
  incident that says that the issue is not present.
- ERROR, the test is faulty: a deviation blamed on the suite, an ERROR of a case.
- MISS, the harness did not run the test: an ERROR of host or guest, a run that was cut off.
- SKIP, not applicable: SKIP, and a kernel without user_events.  Nothing becomes DONE.

In addition the run as a whole is a test, `user_events`, with the gravest status of its cases.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from conformance.abi.switches import BY_NAME
from conformance.report.failure import remark, render_failure
from conformance.results.case_result import CaseResult
from conformance.results.outcome import NOT_OK, Blame, Outcome, RunVerdict, SkipReason
from conformance.results.run import RunHead, RunRecord, with_names
from conformance.results.verdict import verdict_line
from host.arch import ARCH
from host.text import printable

MAJOR, MINOR = 5, 3
SUITE = "user_events"
"""First part of the path of every test."""
ORIGIN = re.compile(r"[a-z0-9_]+")
"""The name of a CI system."""
ID = re.compile(rf"{ORIGIN.pattern}:[^\0]+")
"""The id of an object."""
EXCERPT = 16384
"""Maximal characters of an excerpt by the schema; we limit each part of the evidence to it too."""

_DIGITS = 24
# Files of a run, the overview first.
_FILES = ("results.ktap", "results.json", "junit.xml", "console.log")
_LEFT_OUT = "\n[{} characters left out; results.json has them]\n"
# NUL and lone surrogates.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
# Blame for the suite instead of the kernel.
_OURS = {Blame.MODEL, Blame.CASE, Blame.HARNESS}
# Kernels of the user: results.json may have no digest that tells two of them apart.
_OWN = re.compile(r"\+|^(tree|image|here)-")


class Status(StrEnum):
    """The statuses of the schema, the gravest first."""

    FAIL = "FAIL"
    ERROR = "ERROR"
    MISS = "MISS"
    PASS = "PASS"
    SKIP = "SKIP"


class Sender(Struct, frozen=True):
    """The sender of a document: ``origin`` is the name of the CI system in KCIDB.

    ``files`` is the URL below which each run's files are stored, "" for none.  ``build`` is the id
    of the tested build, if KCIDB has it already.
    """

    origin: str
    files: str = ""
    build: str = ""


def render_kcidb(records: Iterable[RunRecord], sender: Sender) -> str:
    """Runs as a document to submit.

    Rendering a run again gives the same ids.
    """
    runs = with_names(records)
    found: dict[str, dict[str, Any]] = {}
    for name, record in runs:
        below = f"{sender.files.rstrip('/')}/{quote(name)}" if sender.files else ""
        own = replace(sender, files=below) if len(runs) > 1 else sender
        for kind, objects in _Run(record, own).objects().items():
            # Several runs may share builds and issues.
            found.setdefault(kind, {}).update({each["id"]: each for each in objects})
    document: dict[str, Any] = {"version": {"major": MAJOR, "minor": MINOR}}
    document |= {kind: list(objects.values()) for kind, objects in found.items()}
    return json.dumps(_clean(document), indent=1, allow_nan=False) + "\n"


def status_of(case: CaseResult, head: RunHead) -> Status:
    """The status of a case: see above."""
    match case.outcome:
        case Outcome.SKIP:
            return Status.SKIP
        case Outcome.XFAIL:
            return Status.FAIL
        case Outcome.ERROR:
            return Status.MISS if case.blame in {Blame.HOST, Blame.GUEST} else Status.ERROR
        case outcome if not head.fails(outcome):
            return Status.PASS
        case _:
            return Status.ERROR if case.blame in _OURS else Status.FAIL


def status_of_run(record: RunRecord) -> Status:
    """The gravest status of its cases without known bugs, and of the run itself."""
    if record.not_built:
        return Status.SKIP
    cases = [case for case in record.cases if case.outcome is not Outcome.XFAIL]
    found = {status_of(case, record.head) for case in cases}
    if record.trouble:
        found.add(Status.FAIL if record.verdict is RunVerdict.FAIL else Status.MISS)
    order = list(Status)
    return min(found | {Status.PASS}, key=order.index)


class _Run:
    """The objects of one run."""

    def __init__(self, record: RunRecord, sender: Sender) -> None:
        self._record = record
        self._sender = sender
        self._origin = sender.origin
        head, kernel = record.head, record.head.kernel
        shown = [[case.id, case.outcome, case.duration_s, case.adapted] for case in record.cases]
        # Only facts that never change: later versions of schema 1 may record more of a run.
        run = [head.started, head.suite, record.selected, record.duration_s, record.note]
        self._id = _digest([kernel.id, *run, shown])
        facts = [kernel.id, kernel.release, kernel.source, kernel.config_sha256]
        if kernel.config_sha256 is None or _OWN.search(kernel.id):
            facts.append(self._id)
        self._build = sender.build or f"{self._origin}:{_digest(facts)}"

    def objects(self) -> dict[str, list[dict[str, Any]]]:
        """The objects by the names of the schema."""
        cases = [case for case in self._record.cases if not self._record.not_built]
        known = [
            (case, bug)
            for case in cases
            if case.outcome in (Outcome.XFAIL, Outcome.FIXED)
            for bug in case.bug.split() or [case.id]
        ]
        found = {"tests": [self._whole(), *map(self._test, cases)]}
        if not self._sender.build:
            found = {"checkouts": [self._checkout()], "builds": [self._built()], **found}
        if known:
            found["issues"] = [self._issue(bug) for bug in dict.fromkeys(bug for _, bug in known)]
            found["incidents"] = [self._incident(case, bug) for case, bug in known]
        return found

    def _checkout(self) -> dict[str, Any]:
        kernel = self._record.head.kernel
        return {
            "id": self._build,
            "origin": self._origin,
            "comment": kernel.source or f"unknown source of {kernel.id}",
            "valid": True,
        }

    def _built(self) -> dict[str, Any]:
        kernel = self._record.head.kernel
        # The profile belongs to the run.
        facts = {name: value for name, value in to_builtins(kernel).items() if name != "profile"}
        return {
            "id": self._build,
            "checkout_id": self._build,
            "origin": self._origin,
            "comment": f"{kernel.id} ({kernel.release})" if kernel.release else kernel.id,
            "architecture": self._record.head.host.get("machine", ARCH),
            "status": Status.PASS.value,
            "misc": {"uevt": facts},
        }

    def _whole(self) -> dict[str, Any]:
        record = self._record
        test = self._common(SUITE, status_of_run(record), record.duration_s)
        test["comment"] = verdict_line(record)
        test["environment"]["misc"] = {"host": dict(record.head.host)}
        if record.trouble:
            test["log_excerpt"] = _excerpt(record.trouble)
        if self._sender.files:
            links = [{"name": name, "url": self._address(name)} for name in _FILES[1:]]
            test["output_files"] = links
        test["misc"] = {
            "uevt": {
                "suite": record.head.suite,
                "profile": record.head.kernel.profile,
                "verdict": record.verdict.value,
                "fail_on": record.head.fail_on.value,
                "note": record.note,
                "contradictions": to_builtins(record.contradictions),
            }
        }
        return test

    def _test(self, case: CaseResult) -> dict[str, Any]:
        head = self._record.head
        test = self._common(f"{SUITE}.{case.id}", status_of(case, head), case.duration_s)
        facts = {key: value for key, value in case.to_json().items() if key != "evidence" and value}
        if case.outcome is Outcome.SKIP:
            test["comment"] = SkipReason(case.reason).sentence
        elif comment := remark(case) or case.reason:
            test["comment"] = comment
        if case.outcome in NOT_OK | {Outcome.XFAIL}:
            shown = printable("\n".join(render_failure(case, head)))
            test["log_excerpt"] = _excerpt(shown)
            parts = {**to_builtins(case.evidence), "steps": "\n".join(case.evidence.steps)}
            del parts["program"]
            facts["evidence"] = {name: _excerpt(text) for name, text in parts.items() if text}
        test["misc"] = {"uevt": facts}
        return test

    def _common(self, path: str, status: Status, duration_s: float) -> dict[str, Any]:
        """The members of every test; of a case only the start of its run is known."""
        test: dict[str, Any] = {
            "id": self._test_id(path),
            "build_id": self._build,
            "origin": self._origin,
            "path": path,
            "status": status.value,
            "start_time": self._record.head.started,
            "duration": duration_s,
            "environment": {"comment": self._where},
        }
        if self._sender.files:
            test["log_url"] = self._address(_FILES[0])
        return test

    @property
    def _where(self) -> str:
        head = self._record.head
        here = head.kernel.id.startswith("here-")
        return "the running kernel" if here else f"QEMU ({head.host['accel']})"

    def _issue(self, bug: str) -> dict[str, Any]:
        known = BY_NAME.get(bug)
        return {
            "id": self._issue_id(bug),
            "version": 1,
            "origin": self._origin,
            "comment": f"a known bug of the kernel: {known.says if known else bug}",
            "culprit": {"code": True, "tool": False, "harness": False},
        }

    def _incident(self, case: CaseResult, bug: str) -> dict[str, Any]:
        test = self._test_id(f"{SUITE}.{case.id}")
        return {
            "id": f"{test}.{bug}",
            "origin": self._origin,
            "issue_id": self._issue_id(bug),
            "issue_version": 1,
            "test_id": test,
            "present": case.outcome is Outcome.XFAIL,
            "comment": case.reason,
        }

    def _issue_id(self, bug: str) -> str:
        return f"{self._origin}:{SUITE}.{bug}"

    def _test_id(self, path: str) -> str:
        return f"{self._origin}:{self._id}.{path}"

    def _address(self, name: str) -> str:
        return f"{self._sender.files.rstrip('/')}/{name}"


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode("ascii")).hexdigest()[:_DIGITS]


def _excerpt(text: str) -> str:
    """The beginning and end of a text that is too long."""
    if len(text) <= EXCERPT:
        return text
    kept = (EXCERPT - len(_LEFT_OUT) - len(str(len(text)))) // 2
    return f"{text[:kept]}{_LEFT_OUT.format(len(text) - 2 * kept)}{text[-kept:]}"


def _clean(value: Any) -> Any:
    """Without characters that the database refuses."""
    if isinstance(value, str):
        return _NO_TEXT.sub(lambda found: printable(found[0]), value)
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, (list, tuple)) else value
