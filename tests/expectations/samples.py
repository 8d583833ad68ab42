"""A file of expectations, and runs to check it against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.cli import main
from conformance.results.case_result import CaseResult, Mismatch, Outcome
from conformance.results.results_json import NAME, write_results
from conformance.results.run import KernelFacts, RunRecord
from tests.report.samples import case, head, run

# A case of the suite.
CASE = "registration.same_index_again"

FILE = f"""\
[[expectation]]
case = "{CASE}"
step = 2
field = "errno"
pattern = "ENOENT"
when = "release >= 5.18"
reason = "the event is looked up too early"

[[expectation]]
case = "header.size.0"
step = "any"
field = "value"
pattern = '\\d+'
when = "switch == multi_format"
reason = "sizes differ"
"""


KNOWN = {CASE, "header.size", "header.size.0"}


def deviating(
    case_id: str = CASE,
    observed: str = "ENOENT",
    step: int = 2,
    field: str = "errno",
    **others: Any,
) -> CaseResult:
    """A case that deviates at one step."""
    mismatch = Mismatch(step, field, "EINVAL", observed)
    given = {"outcome": Outcome.FAIL, "reason": str(mismatch), "mismatches": (mismatch,), **others}
    return case(case_id, **given)


def record(release: str, *cases: CaseResult, **facts: str) -> RunRecord:
    """A run of a kernel of this release."""
    kernel = {"id": release, "release": release, "profile": release, "build": release, **facts}
    return run(*cases, head=head(kernel=KernelFacts(**kernel)))


def kept(tmp_path: Path, *records: RunRecord) -> list[str]:
    """Directories with these runs."""
    directories = []
    for number, each in enumerate(records):
        directory = tmp_path / f"run{number}"
        directory.mkdir(exist_ok=True)
        write_results(each, directory / NAME)
        directories.append(str(directory))
    return directories


def expectations(*words: str) -> int:
    return main.main(["expectations", *words])
