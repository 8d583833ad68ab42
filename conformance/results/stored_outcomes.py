"""The outcomes of a stored run without their evidence.

Reading them takes a tenth of the time of ``results_json.read_results``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from conformance.results.case_result import CaseResult
from conformance.results.files import reading
from conformance.results.json_codec import SchemaError, decode
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.results_json import read_document
from conformance.results.run import RunHead, RunRecord


class Program(Struct, frozen=True):
    """The program of a case: its digest and its course, "" if unknown."""

    digest: str = ""
    course: str = ""

    def changed(self, other: Program) -> bool | None:
        """Whether the two programs differ, None if unknown.

        A program that ended early, because it failed, is the same if it is a prefix.
        """
        if not self.digest or not other.digest:
            return None
        if self.digest == other.digest:
            return False
        if not self.course or not other.course:
            return None
        first, second = sorted((self.course, other.course), key=len)
        return not second.startswith(first)


class CaseOutcome(Struct, frozen=True):
    """Outcome, program and reason of one case."""

    outcome: Outcome
    program: Program = Program()
    reason: str = ""

    @classmethod
    def of(cls, result: CaseResult) -> CaseOutcome:
        """Those of a full result."""
        return cls(result.outcome, Program(result.digest or "", result.course), result.reason)


class RunOutcomes(Struct, frozen=True):
    """The outcomes of one run by case id; ``verdict`` is None for a self-check."""

    path: Path
    head: RunHead
    verdict: RunVerdict | None
    cases: Mapping[str, CaseOutcome]


def read_outcomes(path: Path) -> RunOutcomes:
    """Read the outcomes of a results.json.

    Raises ReportError for a file that is unreadable, not JSON, of another schema, or whose verdict
    does not follow from its cases.
    """
    data = read_document(path)
    with reading(path):
        head = decode(RunHead, data, "run")
        record = RunRecord.with_summary(head, tuple(_cases(data)), data)
        cases = {each.id: CaseOutcome.of(each) for each in record.cases}
        return RunOutcomes(path, head, None if head.self_check else record.verdict, cases)


def _cases(data: Mapping[str, Any]) -> Iterator[CaseResult]:
    """The results without what only their reader needs."""
    cases = data.get("cases")
    if not isinstance(cases, list):
        raise SchemaError("run.cases", "expected a list")
    for number, case in enumerate(cases):
        try:
            outcome, id, surface = Outcome(case["outcome"]), case["id"], case["surface"]
            texts = [case.get(key) or "" for key in ("digest", "course", "reason")]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError
            digest, course, reason = texts
            yield CaseResult(id, surface, "", outcome, reason=reason, digest=digest, course=course)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SchemaError(f"run.cases[{number}]", "is not the result of a case") from error
