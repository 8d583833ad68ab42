"""The QEMU command: virtme-ng's without options that hide the console, plus the agent's parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vm.errors import CommandLineTooLong, QemuMissing, VirtmeMissing
from vm.qemu.accelerator import Accelerator, Verdict
from vm.qemu.command_line import MachineSpec, kernel_command_line, qemu_argv


@pytest.fixture
def spec(tmp_path: Path) -> MachineSpec:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(b"kernel")
    qemu = tmp_path / "qemu-system-x86_64"
    qemu.write_text("#!/bin/sh\n")
    qemu.chmod(0o755)
    return MachineSpec(kernel, qemu=qemu, python=Path("/opt/my python/bin/python3"), actors=2)


def _value(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_command(spec: MachineSpec, tmp_path: Path) -> None:
    argv = qemu_argv(spec, console=tmp_path / "a,b.log", channels=[7, 8, 9], monitor=6)
    assert argv[0] == str(spec.qemu)
    assert _value(argv, "-kernel") == str(spec.kernel)
    assert _value(argv, "-m") == "512M"
    assert argv.count("-machine") == argv.count("-cpu") == argv.count("-append") == 1
    assert _value(argv, "-machine") == "q35,accel=tcg"
    assert "-no-reboot" in argv
    assert f"file,id=console,path={tmp_path}/a,,b.log,append=on" in argv
    assert "socket,id=uevt2,fd=9" in argv
    assert "virtserialport,chardev=uevt2,name=uevt2" in argv
    # A kernel with CONFIG_VMGENID notices that it was restored.
    assert "vmgenid,guid=auto" in argv
    assert not any("stdio" in word or "dmesg" in word for word in argv)


def test_every_queue_of_the_ports_has_an_interrupt(spec: MachineSpec, tmp_path: Path) -> None:
    kvm = Accelerator("kvm", "q35,accel=kvm", "host", 1.0, Verdict.WORKS, "")
    # Three ports with two queues each, two control queues and the configuration.
    serial = "virtio-serial-pci,max_ports=4,vectors=11"
    for machine, device in (
        (spec, f"{serial},ioeventfd=off"),
        (replace(spec, accelerator=kvm), serial),
    ):
        argv = qemu_argv(machine, console=tmp_path / "c", channels=[7, 8, 9], monitor=6)
        assert device in argv


def test_kernel_command_line(spec: MachineSpec, tmp_path: Path) -> None:
    line = _value(qemu_argv(spec, console=tmp_path / "c", channels=[7, 8, 9], monitor=6), "-append")
    kernel, _, init = line.partition(" -- ")
    words = kernel.split(" ")
    assert "quiet" not in words
    assert "loglevel=1" not in words
    for needed in ("console=ttyS0,115200", "ignore_loglevel", "panic=-1", "oops=panic"):
        assert needed in words
    assert kernel.endswith('init="/opt/my python/bin/python3"')
    assert init.startswith("-I -S /")
    assert init.endswith(" uevt0")


def test_appended_arguments_come_before_init(spec: MachineSpec, tmp_path: Path) -> None:
    longer = MachineSpec(spec.kernel, qemu=spec.qemu, actors=0, append=("x=FZ y", 'a="b c"'))
    line = _value(qemu_argv(longer, console=tmp_path / "c", channels=[7], monitor=6), "-append")
    assert ' x=FZ y a="b c" init=' in line
    assert kernel_command_line(longer) == line


def test_root_archive(spec: MachineSpec, tmp_path: Path) -> None:
    rooted = replace(spec, root=tmp_path / "root.cpio")
    booted = qemu_argv(rooted, console=tmp_path / "c", channels=[7, 8, 9], monitor=6)
    assert _value(booted, "-initrd") == str(tmp_path / "root.cpio")
    # A kernel that cannot unpack the archive uses the host's root.
    assert ' rdinit="/opt/my python/bin/python3" init=' in _value(booted, "-append")
    assert "-incoming" not in booted
    saved = qemu_argv(rooted, console=tmp_path / "c", channels=[7, 8, 9], monitor=6, state=5)
    assert _value(saved, "-incoming") == "fd:5"
    assert "-initrd" not in saved
    assert _value(saved, "-append") == _value(booted, "-append")


def test_initramfs(spec: MachineSpec, tmp_path: Path) -> None:
    with_modules = replace(spec, initramfs=tmp_path / "i.cpio")
    argv = qemu_argv(with_modules, console=tmp_path / "c", channels=[7, 8, 9], monitor=6)
    assert _value(argv, "-initrd") == str(tmp_path / "i.cpio")


def test_command_line_has_a_limit(spec: MachineSpec, tmp_path: Path) -> None:
    longer = MachineSpec(spec.kernel, qemu=spec.qemu, actors=0, append=("x" * 2048,))
    with pytest.raises(CommandLineTooLong, match="the limit is 2047"):
        qemu_argv(longer, console=tmp_path / "c", channels=[7], monitor=6)


def test_qemu_missing(spec: MachineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(QemuMissing, match="qemu-system-x86_64 is not installed") as caught:
        qemu_argv(MachineSpec(spec.kernel), console=tmp_path / "c", channels=[7], monitor=6)
    assert "apt-get install qemu-system-x86" in caught.value.hint


def test_virtme_ng_fails(spec: MachineSpec, tmp_path: Path) -> None:
    missing = MachineSpec(tmp_path / "no kernel", qemu=spec.qemu, actors=0)
    with pytest.raises(VirtmeMissing):
        qemu_argv(missing, console=tmp_path / "c", channels=[7], monitor=6)
