"""A guest must run the kernel of the target, or nothing is judged."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vm.machine
from conformance.session.target.target import Target, prove_accelerator
from conformance.session.worker.machine_guest import AnotherKernel, ConfigLost, MachineGuest
from kernels.store.built_kernel import BuiltKernel
from vm.qemu import root_archive as archives
from vm.qemu.accelerator import TCG
from vm.qemu.console import Console

CONFIG = "CONFIG_USER_EVENTS=y\nCONFIG_NET=y\n"


class Machine:
    """A booted machine with given facts."""

    start = "booted"
    console = Console(Path("there is none"))
    ready_at, opened = 0, ()

    def __init__(self, info: dict[str, Any]) -> None:
        self.info = info

    def wait_ready(self, deadline: object) -> None:
        pass

    def pristine(self, *words: object) -> None:
        pass


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


def guest_of(
    monkeypatch: pytest.MonkeyPatch, target: Target, directory: Path, **info: Any
) -> tuple[MachineGuest, Machine]:
    """A guest whose machine has the right facts, except for ``info``."""
    machine = Machine({"release": target.release, "config": CONFIG, **info})
    monkeypatch.setattr(vm.machine.Machine, "launch", lambda *words, **named: machine)
    monkeypatch.setattr(archives, "root_archive", lambda python, cache: Path("root.cpio"))
    return MachineGuest(target, directory), machine


@pytest.mark.parametrize(
    ("info", "refusal", "said"),
    [
        ({"release": "6.12.116"}, AnotherKernel, "runs 6.12.116 instead of 6.12.117"),
        ({"release": ""}, AnotherKernel, "instead of 6.12.117"),
        ({"config": CONFIG + "CONFIG_BPF=y\n"}, AnotherKernel, "another configuration"),
        ({"config": "CONFIG_NET=y\n"}, ConfigLost, "USER_EVENTS"),
        ({"config": ""}, ConfigLost, "USER_EVENTS"),
        ({"config": None}, ConfigLost, "does not show"),
    ],
)
def test_guest_with_another_kernel_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    target: Target,
    tmp_path: Path,
    info: dict[str, Any],
    refusal: type[Exception],
    said: str,
) -> None:
    guest, _ = guest_of(monkeypatch, target, tmp_path, **info)
    with pytest.raises(refusal, match=said):
        guest.wait_ready()


def test_replaced_guest_with_another_kernel_is_refused(
    monkeypatch: pytest.MonkeyPatch, target: Target, tmp_path: Path
) -> None:
    guest, machine = guest_of(monkeypatch, target, tmp_path)
    guest.wait_ready()
    guest.pristine()
    machine.info = {**machine.info, "release": "6.1.192"}
    with pytest.raises(AnotherKernel):
        guest.pristine()


def test_image_is_identified_by_its_release(
    monkeypatch: pytest.MonkeyPatch, target: Target, tmp_path: Path
) -> None:
    image = replace(target, wanted=(), config_sha256=None)
    guest_of(monkeypatch, image, tmp_path, config=None)[0].wait_ready()


def test_real_guest_is_identified(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """Release and configuration are those of the kernel in the store."""
    right = Target(
        built_kernel.kernel_id,
        built_kernel.abi,
        release=built_kernel.release,
        image=built_kernel.image,
        config_sha256=built_kernel.config_sha256,
        wanted=built_kernel.wanted,
        accelerator=prove_accelerator(built_kernel.image),
    )
    wrong = [
        replace(right, release="6.12.1"),
        replace(right, config_sha256="0" * 64),
        replace(right, wanted=(*right.wanted, "CONFIG_KASAN=y")),
    ]
    for number, target in enumerate([right, *wrong]):
        guest = MachineGuest(target, tmp_path / str(number))
        try:
            if target is right:
                guest.wait_ready()
            else:
                with pytest.raises((AnotherKernel, ConfigLost)):
                    guest.wait_ready()
        finally:
            guest.close()
