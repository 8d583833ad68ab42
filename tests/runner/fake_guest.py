"""A guest without a kernel, and cases without operations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from conformance.abi.profile import Profile
from conformance.cases.case import Case, Isolation, Tier
from conformance.client import tracefs
from conformance.client.executor import Deadline, ModelDeadline
from conformance.ops.calls import Call
from conformance.results.case_result import CaseResult, Report
from conformance.runner.judgement import Explain
from conformance.runner.runner import Runner
from tests.cases.variants import PROFILE, judged

INIT_MODULE, RMDIR = 175, 84


class Guest:
    """A guest in which every call succeeds except the refused ones.

    ``texts`` are what its files, directories and modes show, by path; those that only some calls
    refuse or change are up to subclasses.  ``calls`` and ``requests`` are what it was asked for,
    ``booted`` the numbers of processors of each new start.
    """

    def __init__(
        self,
        refused: dict[object, int] | None = None,
        texts: dict[str, str] | None = None,
        *,
        complaining: bool = False,
    ) -> None:
        self._refused = refused or {}
        self.texts = {tracefs.TRACING_ON: "1\n", **(texts or {})}
        self.calls: list[Call] = []
        self.requests = 0
        self.booted: list[int] = []
        self._complaining = complaining
        # With the marks among its lines, and the number of lines that were searched.
        self._console = ["WARNING: of an earlier case"]
        self._searched, self._marked = 1, ""

    def call(
        self, actor: str, calls: Sequence[Call], watch: Sequence[tuple[str, int, int]] = ()
    ) -> list[dict[str, Any]]:
        self.requests += 1
        self.calls += calls
        return [self._result(call) for call in calls]

    def _result(self, call: Call) -> dict[str, Any]:
        about = call[1] if len(call) > 1 else ""
        errno = self._refused.get(about, 0)
        if call[:2] == ["sys", INIT_MODULE] and self._complaining:
            self._console.append("WARNING: of the module")
        text = self.texts.get(str(about), "") if call[0] in ("slurp", "list", "status") else ""
        memory = bytes(int(str(call[2]))) if call[0] == "peek" else b""
        return {
            "value": -1 if errno else 0,
            "errno": errno,
            "data": (memory or text.encode()).hex(),
            "watch": [],
        }

    def deadline(self, seconds: float, what: str) -> Deadline:
        return ModelDeadline()

    def pause(self, deadline: Deadline) -> None:
        time.sleep(0)

    def mark(self, text: str) -> int:
        self._marked = text
        return len(self._console)

    def console(self, since: int) -> str:
        return "\n".join(self._console[self._from(since) :])

    def late_reports(self) -> tuple[list[Report], str]:
        lines, self._searched = self._console[self._searched :], len(self._console)
        late = [Report("warn", line, f"warn:{line}", after=self._marked) for line in lines]
        return late, "\n".join(lines)

    def reports(self, since: int) -> list[Report]:
        self._searched = len(self._console)
        return [Report("warn", line, f"warn:{line}") for line in self._console[self._from(since) :]]

    def configured(self, option: str) -> bool | None:
        return option != "CONFIG_KASAN"

    def mounting(self) -> Call:
        return ["mount_programs", [], []]

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        self.booted.append(processors)
        self._console.append("booting")
        self._searched, self._marked = len(self._console), ""

    @staticmethod
    def _from(since: int) -> int:
        assert since >= 0, "a console has no text before its beginning"
        return since


def needing(module: str) -> Case:
    return Case("other.case", "", "", "6.4..", (), Tier.QUICK, Isolation.EVENTS, module=module)


PLAIN = needing("")


def running(
    guest: Guest,
    profile: Profile = PROFILE,
    explain: Explain = lambda error, before: None,
    **options: Any,
) -> Runner:
    """A runner on a guest, whose errors are by default never explained."""
    return Runner(profile, lambda: guest, explain, **options)


def outcome(guest: Guest, case: Case) -> CaseResult:
    """The result of a case without operations."""
    return judged(running(guest, modules=lambda name: b"module"), case)
