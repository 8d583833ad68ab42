"""A file of expectations, and runs that show what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.cli import main
from conformance.results.case_result import CaseResult, Mismatch, Outcome
from conformance.results.results_json import NAME, write_results
from conformance.results.run import KernelFacts, RunRecord
from tests.report.samples import case, head, run

# Cases that the suite has: a function without variants, and one with.
CASE, FUNCTION = "registration.same_index_again", "write.parts"


FILE = f"""\
# What stands on top stays.

# About the one below.
[[expectation]]
case = "{CASE}" # not dated
step = 2
# Why only this one.
field = "errno"
pattern = "ENOENT"
when = "release >= 5.18" # all of them
reason = "it is looked up too early"

# The last one.
[[expectation]]
case = "header.size.0"
step = "any"
field = "value"
pattern = '\\d+'
when = "switch == multi_format"
reason = "sizes differ"
"""


KNOWN = {CASE, FUNCTION, f"{FUNCTION}.one", f"{FUNCTION}.two", "header.size", "header.size.0"}


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
