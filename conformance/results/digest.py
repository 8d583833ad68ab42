"""A run in brief: what each case came to, by which program, and nothing of why.

Reading one takes a tenth of what `results.read_results` takes: of many runs nobody wants more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.results.case_result import Outcome, RunVerdict
from conformance.results.errors import ReportError
from conformance.results.files import read_json
from conformance.results.json_codec import SchemaError, decode
from conformance.results.run import KernelFacts, RunHead

_ID = re.compile(r"[a-z0-9_.-]+")
# Kernels that keep their names while people change them: patched ones, trees, images.
_CHANGING = re.compile(r"\+|^tree-|^image-")


@dataclass(frozen=True, slots=True)
class Program:
    """What a case performed: its digest, "" where there is none, and its course."""

    digest: str = ""
    course: str = ""

    def changed(self, other: Program) -> bool | None:
        """Whether the two are different programs; None where nobody can tell.

        One that ended early, for it failed, is the same as far as it goes.
        """
        if not self.digest or not other.digest:
            return None
        if self.digest == other.digest:
            return False
        if not self.course or not other.course:
            return None
        first, second = sorted((self.course, other.course), key=len)
        return not second.startswith(first)


@dataclass(frozen=True, slots=True)
class Shown:
    """What became of one case."""

    outcome: Outcome
    program: Program = Program()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Brief:
    """One run; ``verdict`` is None for a self-check."""

    path: Path
    head: RunHead
    verdict: RunVerdict | None
    cases: Mapping[str, Shown]


def same_kernel(one: KernelFacts, other: KernelFacts) -> bool:
    """Whether two runs judged the very same kernel by the same contract.

    Where a run did not keep what identifies a build, only a kernel that nobody edits under its
    name can be known to be the same.
    """
    facts = [(each.id, each.release, each.profile, each.source) for each in (one, other)]
    if facts[0] != facts[1] or one.config_sha256 != other.config_sha256:
        return False
    if one.build is None or other.build is None:
        return _CHANGING.search(one.id) is None
    return one.build == other.build


def read_brief(path: Path) -> Brief:
    """The brief of a results.json.

    Raises ReportError for a file that cannot be read, is not JSON, or is of another schema.
    """
    data = read_json(path)
    try:
        head = decode(RunHead, data, "run")
        return Brief(path, head, _verdict(data, head), dict(_cases(data)))
    except SchemaError as error:
        raise ReportError.malformed(path, str(error)) from error


def _verdict(data: Mapping[str, Any], head: RunHead) -> RunVerdict | None:
    if head.self_check:
        return None
    try:
        return RunVerdict(data["summary"]["verdict"])
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaError("run.summary.verdict", "is none") from error


def _cases(data: Mapping[str, Any]) -> Iterator[tuple[str, Shown]]:
    cases = data.get("cases")
    if not isinstance(cases, list):
        raise SchemaError("run.cases", "expected a list")
    for number, case in enumerate(cases):
        try:
            name, outcome = case["id"], Outcome(case["outcome"])
            texts = [case.get(key) or "" for key in ("digest", "course", "reason")]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SchemaError(f"run.cases[{number}]", "is no result of a case") from error
        if not all(isinstance(text, str) for text in (name, *texts)) or not _ID.fullmatch(name):
            raise SchemaError(f"run.cases[{number}]", "is no result of a case")
        yield name, Shown(outcome, Program(texts[0], texts[1]), texts[2])
