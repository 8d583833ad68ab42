"""Real guests, and an actor on the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host.deadline import Deadline
from host.kernel_reports import CRASHES
from tests.vm.actors import Host
from vm.errors import VmError
from vm.machine import Machine, MachineSpec
from vm.qemu import guest_files
from vm.snapshots.files import Snapshots

# Before test modules are collected: the guest's half loads the native engine when imported.
guest_files.compile_agent()


def boot(spec: MachineSpec, directory: Path, snapshots: Path | None = None) -> Machine:
    """Boot a machine, or restore it from a directory of snapshots."""
    return Machine.boot(
        spec,
        directory=directory,
        deadline=Deadline(120.0, "boot"),
        snapshots=Snapshots(snapshots) if snapshots is not None else None,
    )


def healthy(machine: Machine) -> bool:
    """Whether the agent answers a ping and the console shows no crash."""
    if machine._power is None:
        return False
    try:
        # Not through `call`, whose post-mortem may end the guest.
        machine._ping(machine._power)
    except VmError:
        return False
    return not any(found.kind in CRASHES for found in machine.console.findings(machine._booted_at))


@pytest.fixture(scope="module")
def spec(built_kernel: Any) -> MachineSpec:
    return MachineSpec(kernel=built_kernel.image)


@pytest.fixture(scope="module")
def guest(spec: MachineSpec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One guest shared by all tests that leave it usable."""
    with boot(spec, tmp_path_factory.mktemp("guest")) as guest:
        yield guest


@pytest.fixture
def machine(guest: Machine) -> Machine:
    """The shared guest with fresh actors; restarted if the last test has crashed it."""
    if not healthy(guest):
        guest.pristine()
    guest.call("", [["reset"]])
    guest.call("", [["spawn", "a"], ["spawn", "b"]])
    return guest


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.actor.kill()
    host.close()
