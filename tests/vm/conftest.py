"""A real guest, with two processes to make calls in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from host.deadline import Deadline
from tests.vm.actors import Host
from vm.machine import Machine, MachineSpec
from vm.qemu import guest_files

BOOT_SECONDS = 90.0


@pytest.fixture(scope="session", autouse=True)
def compiled_agent() -> None:
    """Its own half is compiled, whichever test comes first in a fresh checkout."""
    guest_files.compile_agent()


@pytest.fixture(scope="module")
def spec(built_kernel: Any) -> MachineSpec:
    return MachineSpec(kernel=built_kernel.image)


@pytest.fixture(scope="module")
def guest(spec: MachineSpec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One guest for all tests that leave it in order."""
    directory = tmp_path_factory.mktemp("guest")
    with Machine.boot(spec, directory=directory, deadline=Deadline(BOOT_SECONDS, "boot")) as guest:
        yield guest


@pytest.fixture
def machine(guest: Machine) -> Machine:
    """That guest without actors; booted again if the last test has ended it."""
    if not guest.healthy():
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
