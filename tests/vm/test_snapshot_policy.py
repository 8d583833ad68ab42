"""When a snapshot is restored, saved or given up; QEMU is fake."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from host.deadline import Deadline
from tests.vm.captured import read
from vm.agent.roster import Roster
from vm.machine import Machine
from vm.qemu.command_line import MachineSpec
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.qmp import MonitorTrouble, StillStopped
from vm.snapshots import policy
from vm.snapshots.files import STATE, Snapshot, Snapshots
from vm.snapshots.policy import SnapshotPolicy

KEY = "key"
OPENING = (("", (["ping"],)),)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "snapshot_key", lambda spec: KEY)


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "snapshots")


@pytest.fixture
def saved(snapshots: Snapshots) -> Snapshots:
    """The same with a snapshot."""
    with snapshots.claimed(KEY) as scratch:
        assert scratch is not None
        (scratch / STATE).write_bytes(b"state")
        known = {"info": {"boot_id": "one"}, "actors": [], "opening": []}
        snapshots.publish(KEY, scratch, known)
    return snapshots


@pytest.fixture
def spec(tmp_path: Path) -> MachineSpec:
    return MachineSpec(tmp_path / "bzImage", root=tmp_path / "root.cpio")


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_snapshot_removed_after_it_was_found(
    saved: Snapshots, spec: MachineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = saved.find

    def found_and_gone(key: str) -> Snapshot | None:
        found = find(key)
        assert found is not None
        shutil.rmtree(found.directory)
        return found

    monkeypatch.setattr(saved, "find", found_and_gone)
    chosen = SnapshotPolicy(spec, saved)
    with chosen.chosen(cold=False) as state:
        assert state is None
    assert (chosen.restoring, chosen.should_save, chosen.start) == (False, True, "booted")


class Stage:
    """A QEMU whose guest boots at once; `trouble` is raised on saving."""

    def __init__(self, trouble: Exception | None = None, answer: str = "") -> None:
        self.trouble = trouble
        self.answer = answer
        self.running = True
        self.monitor = self.agent = self.qemu = self
        self.roster = Roster(1)

    def save(self, descriptor: int, deadline: Deadline, resume_s: float) -> None:
        assert deadline.remaining() > 20
        if self.trouble is not None:
            raise self.trouble

    def resume(self, deadline: Deadline) -> None:
        self.resuming = deadline

    def hello(self, deadline: Deadline) -> None:
        self.booting = deadline

    def call(self, *words: Any) -> list[dict[str, Any]]:
        data = self.answer if words[1][-1][0] == "slurp" else b"{}".hex()
        return [{"value": 0, "errno": 0, "data": data} for _ in words[1]]

    def cpu_time(self) -> None:
        """Not used here."""

    def off(self) -> None:
        self.running = False


Boot = Callable[..., Machine]


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    """What machines start on, one after another; they do not start without."""
    stages: list[Stage] = []

    def start(*words: object, **named: object) -> Stage:
        if not stages:
            raise OSError("no process")
        return stages.pop(0)

    monkeypatch.setattr(PowerCycle, "on", start)
    return stages


@pytest.fixture
def boot(snapshots: Snapshots, spec: MachineSpec, tmp_path: Path, stages: list[Stage]) -> Boot:
    """Boot a machine on stages."""

    def boot(*coming: Stage, seconds: float = 1.0, opening: Any = ()) -> Machine:
        stages.extend(coming)
        machine = replace(spec, opening=opening)
        deadline = Deadline(seconds, "agent after the boot")
        return Machine.boot(machine, directory=tmp_path, deadline=deadline, snapshots=snapshots)

    return boot


def test_close_before_ready(
    saved: Snapshots, spec: MachineSpec, tmp_path: Path, stages: list[Stage]
) -> None:
    stage = Stage()
    stages.append(stage)
    before = _descriptors()
    machine = Machine.launch(spec, directory=tmp_path, snapshots=saved)
    assert _descriptors() == before + 1
    machine.close()
    assert (stage.running, _descriptors()) == (False, before)


@pytest.mark.usefixtures("stages")
def test_failed_start_leaves_no_descriptor(
    saved: Snapshots, spec: MachineSpec, tmp_path: Path
) -> None:
    before = _descriptors()
    with pytest.raises(OSError, match="no process"):
        Machine.launch(spec, directory=tmp_path, snapshots=saved)
    assert _descriptors() == before


def test_failed_save_keeps_the_guest(boot: Boot) -> None:
    """Saving has its own deadline."""
    stage = Stage(MonitorTrouble("no"))
    assert boot(stage).start == "booted: the snapshot could not be saved: no"
    assert stage.running


def test_no_snapshot_after_a_report(boot: Boot, snapshots: Snapshots, tmp_path: Path) -> None:
    """Guests restored from it would not see the report."""

    class Warning(Stage):
        def call(self, *words: Any) -> list[dict[str, Any]]:
            with (tmp_path / "console.log").open("a") as console:
                console.write(read("warn_6.12"))
            return super().call(*words)

    for stage, saved in ((Warning(), False), (Stage(), True)):
        machine = boot(stage, opening=OPENING)
        assert [request for request, _ in machine.opened] == list(OPENING)
        assert (snapshots.find(KEY) is not None) is saved
        assert bool(machine.console.findings(machine.ready_at)) is not saved


@pytest.mark.usefixtures("saved")
def test_snapshot_without_all_opening_results(boot: Boot) -> None:
    machine = boot(Stage(answer=b"one".hex()), Stage(), seconds=100.0, opening=OPENING)
    assert machine.start == (
        "booted: the snapshot could not be used: it lacks results of the opening requests"
    )


def test_guest_that_does_not_resume_is_booted_again(boot: Boot, snapshots: Snapshots) -> None:
    first, second = Stage(StillStopped("no")), Stage()
    assert boot(first, second).start == "booted: the snapshot could not be saved: no"
    assert (first.running, second.running) == (False, True)
    assert second.booting.seconds > 20
    assert snapshots.find(KEY) is None


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize("answer", ["no hexadecimal", b"of another".hex()])
def test_failed_restore_leaves_time_for_a_boot(boot: Boot, answer: str) -> None:
    first, second = Stage(answer=answer), Stage()
    machine = boot(first, second, seconds=100.0)
    assert machine.start.startswith("booted: the snapshot could not be used: ")
    assert (first.running, second.running) == (False, True)
    assert first.resuming.seconds <= 50
    assert second.booting.remaining() > 50


def test_info_is_queried_before_saving(
    snapshots: Snapshots, spec: MachineSpec, tmp_path: Path
) -> None:
    """An error of `info` is not an error of saving."""

    def info() -> dict[str, Any]:
        raise KeyError("release")

    chosen = SnapshotPolicy(spec, snapshots)
    with chosen.chosen(cold=False), pytest.raises(KeyError):
        chosen.save(cast("PowerCycle", Stage()), info, [], Console(tmp_path / "console.log"))
