"""The runner on a fake guest: cases that cannot begin, and guests that disagree."""

from __future__ import annotations

from errno import EIO, EKEYREJECTED, ENOENT
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.cases.case import Facility, Isolation
from conformance.client import tracefs
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome, RunVerdict, SkipReason
from conformance.runner.guest_setup import GuestSetup
from conformance.runner.judgement import NotJudged
from conformance.runner.switch_probes import Probe
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from conformance.session.worker import machine_guest
from conformance.session.worker.boot_attempts import BootAttempts
from conformance.session.worker.worker import Worker
from tests.cases.variants import judged
from tests.runner.fake_guest import INIT_MODULE, PLAIN, Guest, needing, outcome, running
from vm.errors import BootFailed, HostTrouble


def test_refused_helper_module_is_no_verdict() -> None:
    result = outcome(Guest({INIT_MODULE: EKEYREJECTED}), needing("uevt_probe"))
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.KERNEL)
    assert "the kernel does not load uevt_probe: Key was rejected" in result.reason


def test_report_while_loading_a_helper_module_counts() -> None:
    result = outcome(Guest(complaining=True), needing("uevt_probe"))
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert [str(each.observed) for each in result.mismatches] == ["WARNING: of the module"]


def test_case_that_never_began_is_not_blamed_for_the_console() -> None:
    class Unwell(Guest):
        def mark(self, text: str) -> int:
            raise OSError("no mark")

    result = outcome(Unwell(), PLAIN)
    assert (result.outcome, result.reason) == (Outcome.ERROR, "OSError: no mark")


@pytest.mark.parametrize(
    ("isolation", "tidied"),
    [(Isolation.EVENTS, True), (Isolation.GLOBAL, False), (Isolation.FATAL, False)],
)
def test_guest_to_be_replaced_is_not_cleaned_up(isolation: Isolation, tidied: bool) -> None:
    """A cleanup could fail on a guest that a case has broken."""
    guest = Guest()
    case = replace(PLAIN, isolation=isolation)
    runner = running(guest)
    runner.begin(case, case.id)
    before = guest.requests
    runner.end(case, case.id, AssertionError("wrong"))
    assert (guest.requests > before) is tidied


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
        symbols = {"/proc/kallsyms": f"0 t {symbol}\n" if symbol else ""}
        super().__init__({tracefs.STATUS: ENOENT, tracefs.DATA: ENOENT}, symbols)
        self._config = config

    def configured(self, option: str) -> bool | None:
        assert option == "CONFIG_USER_EVENTS"
        return self._config


@pytest.mark.parametrize(
    ("config", "symbol"), [(False, ""), (False, "user_events_ioctl"), (None, "vfs_ioctl")]
)
def test_kernel_built_without_user_events_is_not_built(config: bool | None, symbol: str) -> None:
    result = outcome(Empty(config, symbol), PLAIN)
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
    runner = running(Empty(config, symbol))
    probe = Probe(replace(PLAIN, switch="persist"), lambda ue: None)
    runner.measure_with([probe])
    for _ in range(2):
        result = judged(runner, PLAIN)
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

    first, before = worker.run(PLAIN, "other.case", attempt)
    assert before is not None
    assert (first.outcome, first.blame, len(boots)) == (Outcome.ERROR, Blame.HOST, 2)
    assert "Linux version" in first.evidence.console
    second, _ = worker.run(PLAIN, "other.again", attempt)
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


def test_case_gets_the_processors_it_needs() -> None:
    guest = Guest()
    runner = running(guest)
    both = replace(PLAIN, facilities=(Facility.SMP,))
    alone = replace(both, isolation=Isolation.FATAL)
    for case in (PLAIN, both, both, PLAIN, alone, both):
        assert judged(runner, case).outcome is Outcome.PASS
    # The last case follows a fatal one.
    assert guest.booted == [2, 1, 2, 2]


def test_kernel_without_smp_never_gets_two_processors() -> None:
    guest = Guest()
    case = replace(PLAIN, facilities=(Facility.SMP,))
    with pytest.raises(NotJudged, match="the kernel has no CONFIG_SMP"):
        running(guest, promised=frozenset()).begin(case, case.id)
    assert guest.booted == []
