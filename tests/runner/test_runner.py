"""The runner on a fake guest: cases that cannot begin, and guests that disagree."""

from __future__ import annotations

from dataclasses import replace
from errno import EIO, EKEYREJECTED, ENOENT
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.case import Case, Facility, Isolation, Tier
from conformance.client import tracefs
from conformance.ops.calls import Call
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome, RunVerdict, SkipReason
from conformance.runner.case_run import NotJudged
from conformance.runner.guest_setup import GuestSetup
from conformance.runner.runner import Runner
from conformance.runner.switch_probes import Probe
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from conformance.session.worker import machine_guest
from conformance.session.worker.boot_attempts import BootAttempts
from conformance.session.worker.worker import Worker
from tests.cases.variants import judged
from tests.runner.fake_guest import INIT_MODULE, PROFILE, Guest, needing, outcome
from vm.errors import BootFailed, HostTrouble


def test_refused_helper_module_is_no_verdict() -> None:
    result = outcome(Guest({INIT_MODULE: EKEYREJECTED}), needing("uevt_probe"))
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.KERNEL)
    assert "the kernel does not load uevt_probe: Key was rejected" in result.reason


def test_report_while_loading_a_helper_module_counts() -> None:
    result = outcome(Guest({}, complaining=True), needing("uevt_probe"))
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert [str(each.observed) for each in result.mismatches] == ["WARNING: of the module"]


def test_case_that_never_began_is_not_blamed_for_the_console() -> None:
    class Unwell(Guest):
        def mark(self, text: str) -> int:
            raise OSError("no mark")

    result = outcome(Unwell({}), needing(""))
    assert (result.outcome, result.reason) == (Outcome.ERROR, "OSError: no mark")


@pytest.mark.parametrize(
    ("isolation", "tidied"),
    [(Isolation.EVENTS, True), (Isolation.GLOBAL, False), (Isolation.FATAL, False)],
)
def test_guest_to_be_replaced_is_not_cleaned_up(isolation: Isolation, tidied: bool) -> None:
    """A cleanup could fail on a guest that a case has broken."""

    class Noting(Guest):
        calls = 0

        def call(self, *arguments: Any, **more: Any) -> list[dict[str, Any]]:
            self.calls += 1
            return super().call(*arguments, **more)

    guest = Noting({})
    case = replace(needing(""), isolation=isolation)
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    runner.begin(case, case.id)
    begun = guest.calls
    runner.end(case, case.id, AssertionError("wrong"))
    assert (guest.calls > begun) is tidied


@pytest.mark.parametrize(
    ("refused", "built"),
    [
        ({}, True),
        ({tracefs.STATUS: ENOENT, tracefs.DATA: ENOENT}, False),
        # A broken file is not a missing one.
        ({tracefs.STATUS: EIO, tracefs.DATA: ENOENT}, True),
        ({tracefs.STATUS: ENOENT}, True),
    ],
)
def test_kernel_without_user_events_has_neither_file(
    refused: dict[object, int], built: bool
) -> None:
    assert GuestSetup(Guest(refused)).has_user_events() is built


class Empty(Guest):
    """A guest without a file of user_events: its configuration, and a symbol of its kernel."""

    def __init__(self, config: bool | None, symbol: str) -> None:
        super().__init__({tracefs.STATUS: ENOENT, tracefs.DATA: ENOENT})
        self._config, self._symbol = config, symbol

    def configured(self, option: str) -> bool | None:
        assert option == "CONFIG_USER_EVENTS"
        return self._config

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call[:2] == ["slurp", "/proc/kallsyms"] and self._symbol:
            result["data"] = f"0 t {self._symbol}\n".encode().hex()
        return result


@pytest.mark.parametrize(
    ("config", "symbol"), [(False, ""), (False, "user_events_ioctl"), (None, "vfs_ioctl")]
)
def test_kernel_built_without_user_events_is_not_built(config: bool | None, symbol: str) -> None:
    result = outcome(Empty(config, symbol), needing(""))
    assert (result.outcome, result.reason) == (Outcome.SKIP, SkipReason.NOT_BUILT)


@pytest.mark.parametrize(
    ("config", "symbol", "why"),
    [
        (True, "", "it was built with CONFIG_USER_EVENTS, whose initialisation failed"),
        (None, "user_events_ioctl", "it was built with CONFIG_USER_EVENTS, whose"),
        (None, "", "nothing shows that it was built without CONFIG_USER_EVENTS"),
    ],
)
def test_kernel_whose_user_events_fail_to_initialise_fails(
    config: bool | None, symbol: str, why: str
) -> None:
    guest = Empty(config, symbol)
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    probe = Probe(replace(needing(""), switch="persist"), lambda ue: None)
    runner.measure_with([probe])
    for _ in range(2):
        result = judged(runner, needing(""))
        assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
        assert result.reason.startswith(
            f"the kernel has neither user_events_data nor user_events_status: {why}"
        )
        assert not runner.measure()
    runner.finish()
    assert runner.take_other_results() == []


def test_kernel_that_does_not_boot_is_booted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later cases get the error of the last boot, since each boot may take a minute."""
    boots = []

    class Unbootable:
        def __init__(
            self, target: Target, directory: Path, counted: BootAttempts, *limits: object
        ) -> None:
            boots.append(target)

        def wait_ready(self) -> None:
            raise BootFailed("no agent", phase="init", hint="read it", console="Linux version")

        def close(self) -> None:
            pass

    monkeypatch.setattr(machine_guest, "MachineGuest", Unbootable)
    target = Target("image-6.12.117", "6.12.117", release="6.12.117", image=tmp_path / "none")
    worker = Worker(target, tmp_path)

    def attempt() -> BaseException | None:
        try:
            worker.begin()
        except HostTrouble as error:
            return error
        return None

    some = Case("a.b", "x", "x", "5.18..", (), Tier.QUICK, Isolation.EVENTS)
    first, before = worker.run(some, "a.b", attempt)
    assert before is not None
    assert (first.outcome, first.blame, len(boots)) == (Outcome.ERROR, Blame.HOST, 2)
    assert "Linux version" in first.evidence.console
    second, _ = worker.run(some, "a.c", attempt)
    assert (second.outcome, len(boots)) == (Outcome.ERROR, 2)
    assert second.reason == "not booted again: no agent; read it"
    assert second.evidence.console == ""


def test_guests_that_disagree_give_no_verdict(tmp_path: Path) -> None:
    skip = CaseResult("a.b", "a", "quick", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
    passed = replace(skip, id="a.c", outcome=Outcome.PASS, reason="")
    failed = replace(passed, outcome=Outcome.FAIL, reason="wrong")
    verdicts = []
    for number, cases in enumerate(([skip], [skip, passed], [skip, failed])):
        (tmp_path / str(number)).mkdir()
        recorder = Recorder(Target("model", "6.12"), tmp_path / str(number))
        recorder.not_built("no user_events")
        for case in cases:
            recorder.case(case)
        verdicts.append(recorder.finish(len(cases), "").verdict)
    assert verdicts == [RunVerdict.NOT_BUILT, RunVerdict.ERROR, RunVerdict.FAIL]


class Counting(Guest):
    """A guest that records its numbers of processors."""

    def __init__(self) -> None:
        super().__init__({})
        self.given: list[int] = []

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        self.given.append(processors)


def test_case_gets_the_processors_it_needs() -> None:
    guest = Counting()
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    plain = needing("")
    both = replace(plain, facilities=(Facility.SMP,))
    alone = replace(both, isolation=Isolation.FATAL)
    for case in (plain, both, both, plain, alone, both):
        runner.begin(case, case.id)
        assert runner.end(case, case.id, None).outcome is Outcome.PASS
    # The last case follows a fatal one.
    assert guest.given == [2, 1, 2, 2]


def test_kernel_without_smp_never_gets_two_processors() -> None:
    guest = Counting()
    nothing: frozenset[Facility] = frozenset()
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None, promised=nothing)
    case = replace(needing(""), facilities=(Facility.SMP,))
    with pytest.raises(NotJudged, match="the kernel has no CONFIG_SMP"):
        runner.begin(case, case.id)
    assert guest.given == []
