"""Explain failures of real guests; tests/drills has those that a case can provoke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host.deadline import Deadline
from kernels.store.store import default_root
from tests.drills import provoke
from tests.vm.conftest import boot, healthy
from vm import errors
from vm.machine import Machine
from vm.qemu.command_line import MachineSpec
from vm.qemu.root_archive import interpreter, root_archive

# Seconds for a guest to power off on a busy host.
_ENDS = 20.0


@pytest.fixture(scope="module")
def spec(built_kernel: Any) -> MachineSpec:
    return MachineSpec(built_kernel.image, root=root_archive(interpreter(), default_root()))


@pytest.fixture(scope="module")
def module() -> Path:
    return provoke.hazard_module()


@pytest.fixture
def machine(spec: MachineSpec, module: Path, tmp_path: Path) -> Iterator[Machine]:
    """A guest of its own, with the hazard module."""
    with boot(spec, tmp_path, default_root() / "snapshots") as machine:
        provoke.insert(machine, module)
        machine.mark("drill")
        yield machine


def test_interruptible_sleep_is_the_kernels_fault(machine: Machine) -> None:
    where = r"sleeps in the kernel \(state S\), in hazard_write < proc_reg_write"
    with pytest.raises(errors.NoAnswer, match=where):
        provoke.provoke(machine, "wait", deadline=Deadline(1, "answer"))
    assert healthy(machine)


@pytest.mark.parametrize("when", ["at once", "after its end"])
def test_garbage_to_the_agent_is_no_crash(machine: Machine, when: str) -> None:
    """Also without a mark, and if QEMU has ended before the call."""
    machine.pristine()
    assert machine._power is not None
    machine._power.agent._supervisor._socket.send(b"\0" * 64)
    if when == "after its end":
        assert machine._power.qemu.wait(_ENDS) == 0
    with pytest.raises(errors.ChannelBroken, match="the agent ended: the host's frame"):
        machine.call("", [["ping"]])


def test_deadlines_are_scaled(machine: Machine) -> None:
    assert machine.slowness >= machine.spec.accelerator.slowness
    basis = f"(0.1 s x {machine.slowness:.3g} for {machine.spec.accelerator.name})"
    assert machine.deadline(0.1, "x").limit.endswith(basis)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('echo "KVM: entry failed, hardware error 0x80000021" >&2; kill -ABRT $$', "KVM: entry"),
        ('ulimit -v 400000; exec "$QEMU" "$@"', "Cannot allocate memory"),
    ],
)
def test_failing_qemu_is_the_hosts_fault(
    spec: MachineSpec, tmp_path: Path, script: str, message: str
) -> None:
    broken = MachineSpec(spec.kernel, root=spec.root, qemu=provoke.fake_qemu(tmp_path, script))
    with pytest.raises(errors.QemuDied, match=message):
        boot(broken, tmp_path)


def test_silent_kernel(spec: MachineSpec, tmp_path: Path) -> None:
    silent = MachineSpec(provoke.silent_kernel(tmp_path / "bzImage"), root=spec.root)
    with pytest.raises(errors.BootFailed, match="its console was silent") as caught:
        Machine.boot(silent, directory=tmp_path, deadline=Deadline(1.5, "agent"))
    assert (caught.value.phase, caught.value.party) == ("silent", errors.Party.HOST)
    assert "console on ttyS0" in caught.value.hint
