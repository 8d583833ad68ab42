"""A guest reaches only its console and its ports, and cannot write host files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.ops.calls import path_in, sys_call
from tests.vm.conftest import boot
from vm.machine import Machine, MachineSpec
from vm.qemu.command_line import port_names
from vm.qemu.root_archive import interpreter, root_archive

pytestmark = pytest.mark.kernel

MS_REMOUNT = 32
# virtme-ng's tag of the exported root.
TAG = "/dev/root"


@pytest.fixture(scope="module", params=["archive", "host"])
def guest(
    request: pytest.FixtureRequest, built_kernel: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A guest with a root archive, and one with the host's root."""
    own = root_archive(interpreter(), tmp_path_factory.mktemp("root"))
    spec = MachineSpec(built_kernel.image, root=own if request.param == "archive" else None)
    with boot(spec, tmp_path_factory.mktemp("guest")) as guest:
        guest.call("", [["spawn", "a"]])
        yield guest


def _errno(guest: Machine, call: Any) -> int:
    (result,) = guest.call("a", [call])
    return int(result["errno"])


def _read(guest: Machine, *call: Any) -> str:
    (result,) = guest.call("a", [list(call)])
    return bytes.fromhex(result["data"] or "").decode()


def _mount(where: str, flags: int) -> Any:
    options = path_in("trans=virtio,version=9p2000.L")
    return sys_call("mount", path_in(TAG), path_in(where), path_in("9p"), flags, options)


def test_host_files_are_not_written(guest: Machine, tmp_path: Path) -> None:
    """Neither in its root, remounted or not, nor elsewhere."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    _errno(guest, sys_call("mkdir", path_in("/tmp/host"), 0o755))
    # The guest may or may not allow the mount itself.
    for where, flags in (("/", MS_REMOUNT), ("/tmp/host", 0)):
        _errno(guest, _mount(where, flags))
    for root in ("", "/tmp/host"):
        for name, flags in (("new", os.O_CREAT), ("mine", 0), ("mine", os.O_TRUNC)):
            path = f"{root}{tmp_path}/{name}"
            assert _errno(guest, ["spill", path, b"evil".hex(), os.O_WRONLY | flags]), path
        assert _errno(guest, sys_call("unlink", path_in(f"{root}{mine}")))
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    assert mine.read_text() == "mine"


def test_root_archive_exports_no_host_files(guest: Machine, tmp_path: Path) -> None:
    """The guest with the root archive has no export to mount."""
    mounts = _read(guest, "slurp", "/proc/mounts", 1 << 16)
    if guest.spec.root is None:
        assert f"{TAG} / 9p " in mounts
        return
    assert _errno(guest, _mount("/mnt", 0))
    assert " 9p " not in mounts
    assert _read(guest, "list", str(tmp_path)) == ""


def test_only_the_agents_ports_exist(guest: Machine) -> None:
    ports = _read(guest, "list", "/sys/class/virtio-ports").split()
    names = [_read(guest, "slurp", f"/sys/class/virtio-ports/{port}/name", 99) for port in ports]
    assert sorted(name.strip() for name in names) == port_names(guest.spec)


def test_no_disks_and_no_network(guest: Machine) -> None:
    disks = _read(guest, "list", "/sys/class/block").split()
    assert [name for name in disks if not name.startswith(("loop", "ram"))] == []
    classes = _read(guest, "list", "/sys/bus/pci/devices").split()
    kinds = [_read(guest, "slurp", f"/sys/bus/pci/devices/{each}/class", 99) for each in classes]
    # Class 1 is mass storage (the chipset's controller has no disk), class 2 is network.
    assert [kind for kind in kinds if kind.startswith("0x02")] == []
