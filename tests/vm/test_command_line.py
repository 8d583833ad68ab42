"""The QEMU command: virtme-ng's without options that hide the console, plus the agent's parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.shell_scripts import write_script
from vm.errors import CommandLineTooLong, QemuMissing, VirtmeMissing
from vm.qemu.accelerator import Accelerator, Verdict
from vm.qemu.command_line import Export, MachineSpec, kernel_command_line, qemu_argv


@pytest.fixture
def spec(tmp_path: Path) -> MachineSpec:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(b"kernel")
    qemu = write_script(tmp_path / "qemu-system-x86_64", "")
    return MachineSpec(kernel, qemu=qemu, python=Path("/opt/my python/bin/python3"), actors=2)


def _argv(spec: MachineSpec, *, state: int | None = None) -> list[str]:
    channels = [7, 8, 9][: 1 + spec.actors + spec.streams]
    return qemu_argv(spec, console=Path("/a,b.log"), channels=channels, monitor=6, state=state)


def _value(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_command(spec: MachineSpec) -> None:
    argv = _argv(spec)
    assert argv[0] == str(spec.qemu)
    assert _value(argv, "-kernel") == str(spec.kernel)
    assert _value(argv, "-m") == "512M"
    assert argv.count("-machine") == argv.count("-cpu") == argv.count("-append") == 1
    assert _value(argv, "-machine") == "q35,accel=tcg"
    assert "-no-reboot" in argv
    assert "file,id=console,path=/a,,b.log,append=on" in argv
    assert "socket,id=uevt2,fd=9" in argv
    assert "virtserialport,chardev=uevt2,name=uevt2" in argv
    # A kernel with CONFIG_VMGENID notices that it was restored.
    assert "vmgenid,guid=auto" in argv
    assert not any("stdio" in word or "dmesg" in word for word in argv)


def test_every_queue_of_the_ports_has_an_interrupt(spec: MachineSpec) -> None:
    kvm = Accelerator("kvm", "q35,accel=kvm", "host", 1.0, Verdict.WORKS, "")
    # Three ports with two queues each, two control queues and the configuration.
    serial = "virtio-serial-pci,max_ports=4,vectors=11"
    assert f"{serial},ioeventfd=off" in _argv(spec)
    assert serial in _argv(replace(spec, accelerator=kvm))


def test_exports_and_streams(spec: MachineSpec) -> None:
    exports = (Export("usr", Path("/usr")), Export("host", Path("/a,b"), writable=True))
    machine = replace(spec, actors=1, streams=1, exports=exports, gdb=Path("/gdb"))
    argv = _argv(machine)
    assert "virtserialport,chardev=stream0,name=stream0" in argv
    assert "virtio-serial-pci,max_ports=4,vectors=11,ioeventfd=off" in argv
    usr, host = (word for word in argv if word.startswith(("local,id=usr", "local,id=host")))
    assert usr.startswith("local,id=usr,path=/usr,")
    assert usr.endswith(",readonly=on")
    assert host.startswith("local,id=host,path=/a,,b,")
    assert "readonly" not in host
    assert "virtio-9p-pci,fsdev=host,mount_tag=host" in argv
    assert _value(argv, "-gdb") == "chardev:gdb"


def test_kernel_command_line(spec: MachineSpec) -> None:
    line = _value(_argv(spec), "-append")
    kernel, _, init = line.partition(" -- ")
    words = kernel.split(" ")
    assert "quiet" not in words
    assert "loglevel=1" not in words
    for needed in ("console=ttyS0,115200", "ignore_loglevel", "panic=-1", "oops=panic"):
        assert needed in words
    assert kernel.endswith('init="/opt/my python/bin/python3"')
    assert init.startswith("-I -S /")
    assert init.endswith(" uevt0 uevt1 uevt2")


def test_appended_arguments_come_before_init(spec: MachineSpec) -> None:
    longer = MachineSpec(spec.kernel, qemu=spec.qemu, actors=0, append=("x=FZ y", 'a="b c"'))
    line = _value(_argv(longer), "-append")
    assert ' x=FZ y a="b c" init=' in line
    assert kernel_command_line(longer) == line


def test_initramfs_and_root_archive(spec: MachineSpec, tmp_path: Path) -> None:
    argv = _argv(replace(spec, initramfs=tmp_path / "i.cpio"))
    assert _value(argv, "-initrd") == str(tmp_path / "i.cpio")
    rooted = replace(spec, root=tmp_path / "root.cpio")
    booted = _argv(rooted)
    assert _value(booted, "-initrd") == str(tmp_path / "root.cpio")
    # A kernel that cannot unpack the archive uses the host's root.
    assert ' rdinit="/opt/my python/bin/python3" init=' in _value(booted, "-append")
    assert "-incoming" not in booted
    saved = _argv(rooted, state=5)
    assert _value(saved, "-incoming") == "fd:5"
    assert "-initrd" not in saved
    assert _value(saved, "-append") == _value(booted, "-append")


def test_command_line_has_a_limit(spec: MachineSpec) -> None:
    longer = MachineSpec(spec.kernel, qemu=spec.qemu, actors=0, append=("x" * 2048,))
    with pytest.raises(CommandLineTooLong, match="the limit is 2047"):
        _argv(longer)


def test_qemu_missing(spec: MachineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(QemuMissing, match="qemu-system-x86_64 is not installed") as caught:
        _argv(MachineSpec(spec.kernel))
    assert "apt-get install qemu-system-x86" in caught.value.hint


def test_virtme_ng_fails(spec: MachineSpec, tmp_path: Path) -> None:
    missing = MachineSpec(tmp_path / "no kernel", qemu=spec.qemu, actors=0)
    with pytest.raises(VirtmeMissing):
        _argv(missing)
