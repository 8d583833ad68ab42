"""Claiming the running system: who may, what a killed run leaves, and events of others."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance import cases
from conformance.cases.case import Facility, Isolation
from conformance.session.__main__ import main
from conformance.session.here import occupancy, privileges, settings, system
from conformance.session.here.errors import Refused
from conformance.session.here.foreign_events import event_of, without_events
from conformance.session.here.system import BorrowedSystem, SystemState
from conformance.session.target.target import check
from conformance.session.worker.here_guest import unfit
from kernels.errors import HostTrouble, UserMistake
from tests.runner.fake_guest import PLAIN
from vm.here.processes import StuckProcess

STATE = SystemState("another boot", {"/nowhere": "1"}, {"/nowhere": (0o640, 0, 0)}, "rw", ("a",))


def options(**given: object) -> Namespace:
    names = ("kernel", "image", "tree", "ref", "modules", "abi", "flavour", "guests", "even_so")
    plain: dict[str, object] = {**dict.fromkeys(names), "here": True, "isolation": "need"}
    plain |= {name: [] for name in ("patch", "config", "module", "append")}
    return Namespace(**{**plain, **given})


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "6.12"},
        {"image": "bzImage"},
        {"tree": "linux"},
        {"patch": ["fix.diff"]},
        {"config": ["file"]},
        {"flavour": "debug"},
        {"append": ["quiet"]},
        {"module": ["dir"]},
        {"guests": 2},
        {"isolation": "case"},
    ],
)
def test_another_kernel_or_a_change_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UserMistake) as raised:
        check(options(**given))
    assert f"--{next(iter(given))}" in str(raised.value)
    assert raised.value.hint


def test_even_so_needs_here() -> None:
    with pytest.raises(UserMistake, match="--even-so goes with --here"):
        check(options(here=None, kernel="6.12", even_so=True))


def test_users_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="needs root") as raised:
        privileges.require_privileges()
    assert raised.value.hint == "run it with sudo"


def test_missing_capabilities_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(privileges, "_effective", lambda: ~(1 << 21 | 1 << 39))
    with pytest.raises(Refused, match="lacks CAP_SYS_ADMIN, CAP_BPF"):
        privileges.require_privileges()


def test_memory_must_be_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Yama refuses process_vm_readv(2) of root too."""
    scope = tmp_path / "ptrace_scope"
    monkeypatch.setattr(privileges, "_PTRACE_SCOPE", scope)
    privileges._require_readable_memory()
    scope.write_text("2\n")
    privileges._require_readable_memory()
    scope.write_text("3\n")
    with pytest.raises(Refused, match="ptrace_scope is 3: the memory of cases") as raised:
        privileges._require_readable_memory()
    assert raised.value.hint.startswith("boot with a lower value")


def test_addresses_of_cases_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    privileges._require_addresses()
    # Twice: the page is unmapped again.
    assert [privileges._map(privileges._ADDRESS) for _ in range(2)] == [0, 0]
    # No process of this machine has memory there, as none has at _ADDRESS with 39 bits.
    monkeypatch.setattr(privileges, "_ADDRESS", 1 << 62)
    with pytest.raises(Refused, match="memory at 0x4000000000000000, which the kernel ref"):
        privileges._require_addresses()


def test_a_release_without_user_events_is_no_mistake(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that --abi names is."""
    monkeypatch.setattr(os, "uname", lambda: Namespace(release="5.15.9-lab", machine="x86_64"))
    words = ["--noconftest", "-puevt", "-pno:cacheprovider", "--exit-style=kselftest"]
    words += ["--ktap=/dev/stdout", str(Path(cases.__file__).parent)]
    assert main([*words, "--here"]) == 4
    reason = "no profile for 5.15.9-lab: user_events came with 5.18"
    assert capfd.readouterr().out == f"KTAP version 1\n1..0 # SKIP {reason}\n"
    assert main([*words, "--here", "--abi=5.15"]) == 1
    assert capfd.readouterr().out == ""


def test_a_run_has_the_settings_that_cases_expect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are set before the first case, stay between cases, and are as before at the end."""
    on, other = tmp_path / "tracing_on", tmp_path / "other"
    for file in (on, other):
        file.write_text("0\n")
    monkeypatch.setattr(settings, "_EXPECTED", {str(on): "1", "/nowhere": "1"})
    found = {str(each): settings.setting(str(each)) for each in (on, other)}
    monkeypatch.setattr(system, "read_settings", lambda: found)
    monkeypatch.setattr(system, "read_attributes", dict)
    for name in ("expand_buffer", "current_options"):
        monkeypatch.setattr(system, name, lambda: "")
    monkeypatch.setattr(system, "remove_leftovers", lambda _: [])
    borrowed = BorrowedSystem(tmp_path)
    borrowed.begin()
    for file in (on, other):
        file.write_text("2\n")
    borrowed.tidy()
    assert (on.read_text(), other.read_text()) == ("1\n", "0\n")
    assert borrowed.restore() == []
    assert (on.read_text(), other.read_text()) == ("0\n", "0\n")


def keep(directory: Path, **changed: object) -> BorrowedSystem:
    record = {name: getattr(STATE, name) for name in STATE.__struct_fields__}
    (directory / "state.json").write_text(json.dumps({**record, **changed}))
    return BorrowedSystem(directory)


def test_a_reboot_has_restored_everything(tmp_path: Path) -> None:
    keep(tmp_path)._recover()
    assert not (tmp_path / "state.json").exists()


def test_a_broken_kernel_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_boot_id", lambda: STATE.boot_id)
    with pytest.raises(HostTrouble, match="an earlier run broke the kernel: it oopsed") as raised:
        keep(tmp_path, broken="it oopsed")._recover()
    assert raised.value.hint == "reboot"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"boot_id": "x", "settings": []}'])
def test_a_damaged_state_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(HostTrouble, match="is malformed"):
        BorrowedSystem(tmp_path)._recover()


def test_giving_up_is_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    borrowed = BorrowedSystem(tmp_path)
    borrowed._keep(STATE)
    borrowed.give_up("it oopsed")
    assert json.loads((tmp_path / "state.json").read_text())["broken"] == "it oopsed"
    assert "not restored: it oopsed; reboot" in capsys.readouterr().err
    assert borrowed.restore() == ["it oopsed"]


def test_nothing_is_restored_beside_a_process_that_the_kernel_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrowed = BorrowedSystem(tmp_path)
    borrowed._keep(replace(STATE, session=7))
    stuck = StuckProcess(7, "D", ("mutex_lock",))
    monkeypatch.setattr(system, "_started", lambda _: "")
    monkeypatch.setattr(system, "end_session", lambda *_: [stuck])
    monkeypatch.setattr(system, "remove_leftovers", lambda _: pytest.fail("it could hang"))
    assert borrowed.restore() == [f"{stuck} and cannot be killed"]


def test_probes_of_every_kind_are_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eprobes and fprobes are in dynamic_events only."""
    shown = tmp_path / "dynamic_events"
    monkeypatch.setattr(occupancy, "DYNAMIC_EVENTS", str(shown))
    before = occupancy.tracing_in_progress()
    shown.write_text("u:theirs u32 a\ne:mine/e sched.sched_switch\nf:fprobes/f vfs_read\n")
    found = "dynamic events: e:mine/e sched.sched_switch, f:fprobes/f vfs_read"
    assert [each for each in occupancy.tracing_in_progress() if each not in before] == [found]


@pytest.mark.parametrize(
    ("case", "foreign", "why"),
    [
        ({"isolation": Isolation.FATAL}, (), "destroys the system"),
        ({"isolation": Isolation.GLOBAL}, ("a",), "without other user events"),
        ({"isolation": Isolation.GLOBAL}, (), ""),
        ({"own_kernel": "it counts"}, (), "it counts"),
        ({"facilities": (Facility.SMP,)}, (), "the first 2 processors"),
        ({}, ("a",), ""),
    ],
)
def test_cases_that_need_another_kernel(
    case: dict[str, object],
    foreign: tuple[str, ...],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    borrowed = BorrowedSystem(tmp_path)
    borrowed.foreign = frozenset(foreign)
    found = unfit(borrowed, replace(PLAIN, **case))
    assert why in found
    assert bool(why) == bool(found)


DYNAMIC = "u:mine u32 a\nu:theirs char[4] b\np:kprobes/x do_exit\n"
STATUS = "mine\ntheirs # Used by ftrace\n\nActive: 2\nBusy: 1\n"
STATUS_6_1 = "1:mine\n2:theirs # Used by perf\n\nActive: 2\nBusy: 1\nMax: 32768\n"


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        (DYNAMIC, "u:mine u32 a\np:kprobes/x do_exit\n"),
        (STATUS, "mine\n\nActive: 1\nBusy: 0\n"),
        (STATUS_6_1, "1:mine\n\nActive: 1\nBusy: 0\nMax: 32768\n"),
        ("", ""),
    ],
)
def test_events_of_others_and_their_totals_are_hidden(shown: str, hidden: str) -> None:
    assert without_events(shown, {"theirs"}) == hidden
    assert without_events(shown, set()) == shown


@pytest.mark.parametrize(
    ("line", "name"),
    [("u:a u8 b", "a"), ("u:a", "a"), ("3:a # Used by ftrace", "a"), ("a", "a"), ("Busy: 1", "")],
)
def test_a_line_names_an_event(line: str, name: str) -> None:
    assert event_of(line) == name
