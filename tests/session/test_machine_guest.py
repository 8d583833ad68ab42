"""Guests of the runner without a machine: how they start, and when they are given up."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import vm.machine
from conformance.ops.calls import Call
from conformance.results.exit_codes import KernelOrigin
from conformance.session.controller.recorder import Recorder
from conformance.session.preflight import trial_boot
from conformance.session.target.gcov import CountedObject
from conformance.session.target.machine import machine_spec
from conformance.session.target.target import Target
from conformance.session.time_limits import CaseTooLong
from conformance.session.worker import console_guest
from conformance.session.worker.machine_guest import MachineGuest
from tests.session.conftest import LOGS, Machine
from vm.agent import encoding
from vm.errors import BootFailed, HostTrouble, NoRoot, VmError
from vm.machine import MachineSpec
from vm.qemu import root_archive as archives
from vm.qemu.accelerator import TCG


@pytest.fixture
def target(tmp_path: Path) -> Target:
    image = tmp_path / "bzImage"
    return Target(
        "image-6.12.117", "6.12.117", image=image, accelerator=TCG, origin=KernelOrigin.USER
    )


def test_read_only_store_falls_back_to_the_host_root(
    target: Target, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(python: Path, cache: Path) -> Path:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "roots")

    monkeypatch.setattr(archives, "root_archive", refused)
    assert machine_spec(target, ())[0].root is None
    assert MachineGuest(target, tmp_path).start == (
        "booted: its root could not be kept: [Errno 30] Read-only file system: 'roots'"
    )


def test_guest_that_cannot_be_replaced_is_given_up(
    target: Target, machine: Machine, tmp_path: Path
) -> None:
    """Otherwise every remaining case would boot twice, a minute each."""
    guest = MachineGuest(target, tmp_path)
    trouble = BootFailed("no agent", phase="init", hint="read it")
    # An occasional failure does not count.
    for machine.trouble in (trouble, None, trouble, None):
        if machine.trouble is None:
            guest.pristine()
        else:
            with pytest.raises(BootFailed):
                guest.pristine()
    # The directory of the guest is gone when the run has ended.
    assert trouble.hint == "read console.log of this run"
    machine.trouble = trouble
    for _ in range(2):
        with pytest.raises(BootFailed):
            guest.pristine()
    assert machine.boots == 6
    for _ in range(3):
        with pytest.raises(HostTrouble, match=r"^not booted again: no agent$"):
            guest.pristine()
    assert machine.boots == 6


def test_report_of_a_new_guest_belongs_to_the_first_case(
    target: Target, machine: Machine, tmp_path: Path
) -> None:
    """Reported between readiness and the first mark; reports of the boot belong to no case."""
    guest = MachineGuest(target, tmp_path)
    guest.pristine()
    machine.console.append((LOGS / "oops_null.log").read_text())
    found = guest.reports(guest.mark("write.first"))
    assert [(each.kind, each.after) for each in found[:1]] == [("oops", "")]
    assert "warning" not in {each.kind for each in found}


FIRST, SECOND = ("", (["spawn", "root"],)), ("root", (["slurp", "a", 1], ["slurp", "b", 1]))
ANSWER: dict[str, Any] = {"value": 0, "errno": 0, "data": None, "watch": []}


def opened(target: Target, machine: Machine, directory: Path) -> MachineGuest:
    """A guest whose saved state has the answers to two requests."""
    machine.opened = [(FIRST, [ANSWER]), (SECOND, [ANSWER, ANSWER])]
    guest = MachineGuest(target, directory)
    guest.pristine()
    return guest


def test_opening_requests_are_answered_from_the_saved_state(
    target: Target, machine: Machine, tmp_path: Path
) -> None:
    guest = opened(target, machine, tmp_path)
    for _ in range(2):
        assert guest.call(FIRST[0], list(FIRST[1])) == [ANSWER]
        assert guest.call(SECOND[0], list(SECOND[1])) == [ANSWER] * 2
        assert machine.asked == []
        # Another guest starts with the same answers.
        guest.pristine()
    guest.call(*FIRST)
    guest.call(*SECOND)
    assert machine.asked == []
    guest.call(*FIRST)
    assert machine.asked == [""]


def test_opening_answers_expire_with_another_request(
    target: Target, machine: Machine, tmp_path: Path
) -> None:
    """The answers may be outdated."""
    guest = opened(target, machine, tmp_path)
    guest.call(*FIRST)
    guest.call("root", [["slurp", "c", 1]])
    guest.call(*SECOND)
    assert machine.asked == ["root", "root"]


def _boot_failed(console: str) -> BootFailed:
    return BootFailed("no agent", phase="init", console=console)


DIED = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100"
PANIC = "Kernel panic - not syncing: IO-APIC + timer doesn't work!"
ROOT, NONE = Path("root.cpio"), None


@pytest.mark.parametrize(
    ("troubles", "roots", "refused"),
    [
        # 9p may be a module: a guest with an archive as root does not need it.
        ([None], [ROOT], False),
        ([_boot_failed(DIED), NoRoot("no driver", phase="kernel")], [ROOT, NONE], True),
        ([_boot_failed(DIED), _boot_failed(DIED)], [ROOT, NONE], False),
        ([_boot_failed(PANIC)], [ROOT], False),
        ([NoRoot("no driver", phase="kernel")], [ROOT], True),
        ([HostTrouble("no QEMU")], [ROOT], False),
    ],
    ids=["boots", "without drivers", "other trouble", "crash", "no initrd", "host"],
)
def test_trial_boot_uses_the_spec_of_the_run(
    target: Target,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    troubles: list[VmError | None],
    roots: list[Path | None],
    refused: bool,
) -> None:
    booted: list[Path | None] = []
    coming = iter(troubles)

    class Booted:
        def close(self) -> None:
            pass

    def boot(spec: MachineSpec, **named: Any) -> Booted:
        booted.append(spec.root)
        assert named["snapshots"] is not None
        if (trouble := next(coming)) is not None:
            raise trouble
        return Booted()

    monkeypatch.setenv("UEVT_CACHE", str(tmp_path))
    monkeypatch.setattr(vm.machine.Machine, "boot", boot)
    monkeypatch.setattr(trial_boot, "snapshot_key", lambda spec: "key")
    if refused:
        with pytest.raises(NoRoot):
            trial_boot.check_boots(target)
    else:
        trial_boot.check_boots(target)
    assert booted == roots


def test_counters_are_kept_before_a_case_and_when_a_guest_ends(
    target: Target, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(actor: str, calls: list[Call], *_: object, **__: object) -> list[dict[str, Any]]:
        # The agent accepts the call.
        encoding.request(1, calls, [])
        return [{**ANSWER, "data": b"gcda".hex()}]

    monkeypatch.setattr(machine, "call", call)
    counted = CountedObject("small.c", tmp_path / "small.gcno", "/sys/kernel/debug/gcov/small.gcda")
    guest = MachineGuest(replace(target, counted=(counted,)), tmp_path)
    for case in ("write.first", "rights.locks_debugfs"):
        guest.mark(case)
    assert (tmp_path / "0-small.gcda").read_bytes() == b"gcda"
    guest.pristine()
    guest.close()
    assert (tmp_path / "1-small.gcda").read_bytes() == b"gcda"


def test_first_reason_to_boot_is_recorded(target: Target, tmp_path: Path) -> None:
    assert target.image is not None
    target.image.touch()
    recorder = Recorder(target, tmp_path)
    for how in ("", "restored", "booted", "booted: first", "restored", "booted: second"):
        recorder.guest_started(how)
    assert recorder.head.host["guests"] == "booted: first"


def test_limit_of_a_case_ends_with_its_guest(
    target: Target, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the cases after one that takes too long have no time at all."""
    monkeypatch.setattr(console_guest, "CASE_S", 0.0)
    guest = MachineGuest(target, tmp_path)
    guest.mark("write.x")
    with pytest.raises(CaseTooLong):
        guest.call("root", [["ping"]])
    guest.pristine()
    guest.call("root", [["ping"]])
