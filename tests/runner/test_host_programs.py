"""Cases that run programs of the host: their guest, and what a host or a kernel may lack."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from errno import EAGAIN, ENODEV
from typing import Any

import pytest
from msgspec.structs import replace

from conformance import ops
from conformance.ops.calls import Call
from conformance.ops.programs import SEARCH_PATH
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome, SkipReason
from conformance.runner.guest_executor import run_to_end
from tests.cases.variants import Outcome as Recorded
from tests.cases.variants import all_variants, judged
from tests.runner.fake_guest import PLAIN, Guest, running

CASE = replace(PLAIN, programs=("perf",))
_PROGRAM = re.compile(r"\b(perf|trace-cmd|bpftrace) (?:record|stat|-e)")


class Programs(Guest):
    """A guest in which a program prints a text after some polls, and 9p may be missing."""

    def __init__(self, says: str, polls: int = 0, mounting: int = 0) -> None:
        super().__init__()
        self._says, self._polls, self._errno = says, polls, mounting
        self.with_programs: list[bool] = []

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call[:1])
        if call[0] == "mount_programs":
            result["errno"] = self._errno
        if call[0] == "end_program":
            result["data"] = self._says.encode().hex()
            self._polls -= 1
            result["errno"] = EAGAIN if self._polls >= 0 else 0
        return result

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        super().pristine(processors)
        self.with_programs.append(programs)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The programs of the host."""
    names = {"perf"}

    def which(name: str, path: str = SEARCH_PATH) -> str | None:
        return f"/usr/bin/{name}" if name in names else None

    monkeypatch.setattr(shutil, "which", which)
    return names


def outcomes(guest: Guest, *cases: Any) -> list[CaseResult]:
    runner = running(guest)
    return [judged(runner, case) for case in cases]


def test_a_guest_with_programs_serves_cases_that_need_them() -> None:
    guest = Programs("perf version 6.1", polls=1)
    results = outcomes(guest, PLAIN, CASE, CASE, PLAIN)
    assert {each.outcome for each in results} == {Outcome.PASS}
    assert guest.with_programs == [True, False]
    asked = [call[0] for call in guest.calls if call[0] in ("mount_programs", "start_program")]
    assert asked == ["mount_programs", "start_program"]


def test_a_missing_program_is_named_with_its_package(installed: set[str]) -> None:
    installed.clear()
    (result,) = outcomes(guest := Programs(""), CASE)
    assert (result.outcome, result.reason) == (Outcome.SKIP, SkipReason.HOST_TOOL)
    assert result.evidence.docs.startswith("the host has no perf; install with")
    assert guest.with_programs == []


def test_a_program_that_does_not_run_on_the_kernel_is_skipped() -> None:
    guest = Programs("WARNING: perf not found for kernel 6.12\n\n  You may need to install")
    (result,) = outcomes(guest, CASE)
    assert (result.outcome, result.reason) == (Outcome.SKIP, SkipReason.HOST_TOOL)
    assert result.evidence.docs == (
        "perf of the host does not run in the guest: WARNING: perf not found for kernel 6.12"
    )


def test_a_kernel_without_9p_is_skipped() -> None:
    (result,) = outcomes(Programs("", mounting=ENODEV), CASE)
    assert (result.outcome, result.reason) == (Outcome.SKIP, SkipReason.CONFIG)
    assert result.evidence.docs == "the kernel does not mount 9p (CONFIG_9P_FS)"


def test_a_program_that_does_not_end_is_left_at_the_deadline() -> None:
    (result,) = run_to_end(Programs("", polls=100), "root", ops.RunProgram("root", "sleep 9"))
    assert result["errno"] == EAGAIN


def test_cases_declare_the_programs_they_run(recorded: dict[str, Recorded]) -> None:
    declared: dict[str, Sequence[str]] = {}
    using: dict[str, set[str]] = defaultdict(set)
    for variant in all_variants():
        outcome = recorded.get(variant.id)
        if outcome is None:
            continue
        case = variant.case
        declared[case.id] = case.programs
        for operation in outcome.lockstep.program:
            if isinstance(operation, ops.RunProgram):
                using[case.id] |= set(_PROGRAM.findall(operation.line))
    wrong = {name for name, programs in declared.items() if set(programs) != using[name]}
    assert wrong == set()
