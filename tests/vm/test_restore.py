"""Real guests restored from a snapshot: the same kernel, the right time, never the wrong guest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vm.conftest import boot
from vm.machine import Machine, MachineSpec
from vm.qemu.root_archive import interpreter, root_archive
from vm.snapshots import policy
from vm.snapshots.files import RECORD, STATE

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def spec(built_kernel: Any, tmp_path_factory: pytest.TempPathFactory) -> MachineSpec:
    root = root_archive(interpreter(), tmp_path_factory.mktemp("root"))
    return MachineSpec(kernel=built_kernel.image, root=root)


def start_of(spec: MachineSpec, directory: Path, snapshots: Path) -> str:
    """How a machine comes up."""
    with boot(spec, directory, snapshots) as machine:
        # It resumes after saving.
        machine.call("", [["ping"]])
        return machine.start


@pytest.fixture(scope="module")
def saved(spec: MachineSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the snapshot of this machine."""
    directory = tmp_path_factory.mktemp("snapshots")
    assert start_of(spec, tmp_path_factory.mktemp("first"), directory) == "booted"
    return directory


@pytest.fixture
def restored(spec: MachineSpec, saved: Path, tmp_path: Path) -> Iterator[Machine]:
    with boot(spec, tmp_path, saved) as machine:
        assert machine.start == "restored"
        yield machine


def _state(saved: Path) -> Path:
    (state,) = saved.glob(f"*/{STATE}")
    return state


def _read(machine: Machine, path: str) -> str:
    machine.call("", [["spawn", "reader"]])
    (result,) = machine.call("reader", [["slurp", path, 1 << 20]])
    machine.call("", [["kill", "reader", 9]])
    return bytes.fromhex(result["data"]).decode()


def test_restored_guest_serves(restored: Machine) -> None:
    restored.check(restored.mark("here"))
    assert restored.info["release"] in _read(restored, "/proc/version")
    assert _read(restored, "/proc/sys/kernel/random/boot_id").strip() == restored.info["boot_id"]
    assert " 9p " not in _read(restored, "/proc/mounts")


def test_console_starts_with_the_boot(restored: Machine) -> None:
    assert "Linux version" in restored.console.text()
    assert not restored.console.findings()


def test_clock_is_right(restored: Machine) -> None:
    restored.call("", [["spawn", "a"]])
    where = 0x100000
    calls = [
        ["sys", 9, [where, 4096, 3, 0x32, -1, 0], None],
        ["sys", 228, [0, where], None],  # clock_gettime(CLOCK_REALTIME)
        ["peek", where, 8],
    ]
    seconds = int.from_bytes(bytes.fromhex(restored.call("a", calls)[2]["data"]), "little")
    assert abs(seconds - time.time()) < 5


def test_guests_from_one_snapshot_differ(spec: MachineSpec, saved: Path, tmp_path: Path) -> None:
    with (
        boot(spec, tmp_path / "one", saved) as one,
        boot(spec, tmp_path / "two", saved) as two,
    ):
        assert one.start == two.start == "restored"
        uuids = {_read(machine, "/proc/sys/kernel/random/uuid") for machine in (one, two)}
    assert len(uuids) == 2


def test_pristine_is_restored(restored: Machine) -> None:
    restored.call("", [["spawn", "a"]])
    began = time.monotonic()
    restored.pristine()
    assert time.monotonic() - began < 10
    assert restored.start == "restored"
    restored.call("", [["spawn", "a"]])


def test_damaged_snapshot_is_not_used(spec: MachineSpec, saved: Path, tmp_path: Path) -> None:
    state = _state(saved)
    with state.open("r+b") as file:
        file.seek(state.stat().st_size // 2)
        file.write(b"changed")
    assert [start_of(spec, tmp_path / name, saved) for name in ("one", "two", "three")] == [
        "booted: the snapshot could not be used: its checksum is wrong",
        # The next guest saves it again.
        "booted",
        "restored",
    ]


def test_foreign_snapshot_is_not_used(spec: MachineSpec, saved: Path, tmp_path: Path) -> None:
    """Its digest is right, but its guest has another boot id."""
    record = _state(saved).with_name(RECORD)
    honest = record.read_text()
    with boot(spec, tmp_path / "one", saved) as machine:
        boot_id = machine.info["boot_id"]
    record.write_text(honest.replace(boot_id, "0" * len(boot_id)))
    start = start_of(spec, tmp_path / "two", saved)
    assert start.startswith("booted: the snapshot could not be used: its guest has")
    assert start_of(spec, tmp_path / "three", saved) == "booted"


def test_unwritable_directory(spec: MachineSpec, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with boot(spec, tmp_path / "guest", blocked) as machine:
        assert machine.start.startswith("booted: the snapshot could not be saved: ")
        machine.call("", [["ping"]])
        machine.pristine()
        machine.call("", [["ping"]])


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.006])
def test_save_timeout(
    spec: MachineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Whenever saving is interrupted, the guest resumes or boots again."""
    monkeypatch.setattr(policy, "_SAVE_S", seconds)
    with boot(spec, tmp_path / "guest", tmp_path / "snapshots") as machine:
        machine.call("", [["spawn", "a"]])
        machine.check(machine.mark("here"))
        saved = bool(list(tmp_path.glob(f"snapshots/*/{STATE}")))
        # A fast host may still save it.
        assert (machine.start == "booted") == saved
        assert saved or machine.start.startswith("booted: the snapshot could not be saved: ")
        assert not saved or seconds > 0


def test_restored_guest_leaves_nothing(spec: MachineSpec, saved: Path, tmp_path: Path) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with boot(spec, tmp_path / "guest", saved) as machine:
        pid = machine.pid
    assert pid
    assert not Path(f"/proc/{pid}").exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
