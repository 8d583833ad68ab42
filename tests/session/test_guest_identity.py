"""A guest must run the kernel of the target, or nothing is judged."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.session.target.target import Target
from conformance.session.worker.machine_guest import MachineGuest
from tests.session.conftest import Machine
from vm.errors import HostTrouble
from vm.qemu.accelerator import TCG

CONFIG = "CONFIG_USER_EVENTS=y\nCONFIG_NET=y\n"


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(
        "6.12",
        "6.12.117",
        release="6.12.117",
        image=tmp_path / "bzImage",
        config_sha256=hashlib.sha256(CONFIG.encode()).hexdigest(),
        wanted=("CONFIG_USER_EVENTS=y",),
        accelerator=TCG,
    )


@pytest.fixture
def guest(machine: Machine, target: Target, tmp_path: Path) -> MachineGuest:
    """A guest whose machine has the right facts."""
    machine.info = {"release": target.release, "config": CONFIG}
    return MachineGuest(target, tmp_path)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"release": "6.12.116"}, "runs 6.12.116 instead of 6.12.117"),
        ({"release": ""}, "instead of 6.12.117"),
        ({"config": CONFIG + "CONFIG_BPF=y\n"}, "another configuration"),
        ({"config": "CONFIG_NET=y\n"}, "USER_EVENTS"),
        ({"config": ""}, "USER_EVENTS"),
        ({"config": None}, "does not show"),
    ],
)
def test_guest_with_another_kernel_is_refused(
    machine: Machine, guest: MachineGuest, info: dict[str, Any], said: str
) -> None:
    machine.info |= info
    with pytest.raises(HostTrouble, match=said):
        guest.wait_ready()


def test_replaced_guest_with_another_kernel_is_refused(
    machine: Machine, guest: MachineGuest
) -> None:
    guest.wait_ready()
    guest.pristine()
    machine.info |= {"release": "6.1.192"}
    with pytest.raises(HostTrouble, match=r"runs 6\.1\.192 instead"):
        guest.pristine()


def test_image_is_identified_by_its_release(
    machine: Machine, target: Target, tmp_path: Path
) -> None:
    machine.info = {"release": target.release, "config": None}
    MachineGuest(replace(target, wanted=(), config_sha256=None), tmp_path).wait_ready()
