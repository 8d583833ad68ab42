"""The command line of QEMU: virtme-ng's, with the agent's init, console and channels."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from host.arch import CONSOLE, QEMU
from host.packages import install_command
from vm.errors import CommandLineTooLong, QemuMissing
from vm.qemu.accelerator import TCG, Accelerator
from vm.qemu.virtme_ng import Command, virtme_command

#: Prefix of the virtio-serial ports; number 0 is the supervisor's.
PORT = "uevt"
#: Prefix of the ports that carry bytes.
STREAM = "stream"
#: x86 COMMAND_LINE_SIZE, bytes including the final NUL.
COMMAND_LINE_SIZE = 2048
_INIT = Path(__file__).parents[1] / "guest" / "init.py"

#: An actor ("" is the supervisor) and its calls, as in Machine.call.
Request = tuple[str, tuple[Sequence[object], ...]]

#: Options of virtme-ng's command that are replaced.
_REPLACED = frozenset(("-append", "-machine", "-cpu", "-serial", "-mon", "-echr"))
_SERIAL = "virtio-serial-pci"
#: Kernel arguments of virtme-ng that would hide or redirect console output, or replace init.
_DROPPED = ("quiet", "loglevel=", "console=", "virtme_console=", "init=")
#: The exported files do not change, so the guest may cache and read ahead.
_CACHE = "cache=loose"
#: Show everything on the console, and end at once after a panic or oops (with -no-reboot).
_KERNEL_ARGUMENTS = (
    f"console={CONSOLE},115200",
    "ignore_loglevel",
    "printk.devkmsg=on",
    "panic=-1",
    "oops=panic",
    # On a busy host without KVM the timer test at boot may fail and panic ("IO-APIC + timer
    # doesn't work!").
    "no_timer_check",
    # For vm.postmortem.hang.  With a value, because a kernel without the parameter would pass the
    # bare word to init.
    "unknown_nmi_panic=1",
    "sysrq_always_enabled=1",
    # Shorten synchronize_rcu(); call_rcu() is not affected.
    "rcupdate.rcu_expedited=1",
)


class Export(Struct, frozen=True):
    """A directory of the host that the guest can mount by its tag (9p over virtio)."""

    tag: str
    path: Path
    writable: bool = False


class MachineSpec(Struct, frozen=True):
    """The machine to boot.

    - actors: maximum number at a time; each has a port
    - append: further kernel arguments, quoted as the kernel parses them
    - python: interpreter for the guest, at the same path there; by default the running one
    - qemu: program, by default found on PATH
    - root: archive of the guest's root (vm.qemu.root_archive); by default the host's over 9p
    - initramfs: for a kernel whose drivers are modules (vm.qemu.initramfs)
    - cache: directory for the output of virtme-ng (vm.qemu.virtme_ng)
    - opening: first requests, performed before a snapshot is saved
    - streams: number of ports that carry bytes instead of requests (vm.shell)
    - exports: directories of the host.  A snapshot is saved before the guest mounts them
    - gdb: UNIX socket on which QEMU serves the gdb protocol
    """

    kernel: Path
    accelerator: Accelerator = TCG
    memory_mib: int = 512
    cpus: int = 1
    actors: int = 8
    append: tuple[str, ...] = ()
    python: Path | None = None
    qemu: Path | None = None
    root: Path | None = None
    initramfs: Path | None = None
    cache: Path | None = None
    opening: tuple[Request, ...] = ()
    streams: int = 0
    exports: tuple[Export, ...] = ()
    gdb: Path | None = None


def qemu_argv(
    spec: MachineSpec,
    *,
    console: Path,
    channels: Sequence[int],
    monitor: int,
    state: int | None = None,
) -> list[str]:
    """The command of QEMU.

    `channels` and `monitor` are descriptors of QEMU's ends of the ports, those of streams last, and
    of the monitor; `state` is that of a snapshot to restore instead of booting.  Raises
    QemuMissing, VirtmeMissing, CommandLineTooLong.
    """
    program, options = _virtme_for(spec)
    kept = [
        word
        for option in options
        if not _is_replaced(option) and not (spec.root and _is_export(option))
        for word in option
    ]
    kept = [_serial(spec) if word == _SERIAL else word for word in kept]
    # fmt: off
    return [
        program, *kept,
        "-machine", spec.accelerator.machine,
        "-cpu", spec.accelerator.cpu,
        "-no-reboot",
        "-chardev", f"file,id=console,path={_value(console)},append=on",
        "-serial", "chardev:console",
        *_ports(spec, channels),
        *(word for export in spec.exports for word in _export(export)),
        # A new id makes a restored kernel with the vmgenid driver reseed its RNG.
        "-device", "vmgenid,guid=auto",
        *(["-incoming", f"fd:{state}"] if state is not None else _initrd(spec)),
        "-chardev", f"socket,id=monitor,fd={monitor}",
        "-mon", "chardev=monitor,mode=control",
        *_gdb(spec),
        "-append", _kernel_command_line(spec, options),
    ]
    # fmt: on


def kernel_command_line(spec: MachineSpec) -> str:
    """The kernel command line.  Raises as qemu_argv."""
    return _kernel_command_line(spec, _virtme_for(spec)[1])


def _virtme_for(spec: MachineSpec) -> Command:
    qemu = find_qemu(spec.qemu)
    return virtme_command(spec.kernel, spec.memory_mib, spec.cpus, qemu, spec.cache)


def port_names(spec: MachineSpec) -> list[str]:
    """The ports of the supervisor and of the actors."""
    return [f"{PORT}{number}" for number in range(spec.actors + 1)]


def stream_names(spec: MachineSpec) -> list[str]:
    """The ports that carry bytes."""
    return [f"{STREAM}{number}" for number in range(spec.streams)]


def _initrd(spec: MachineSpec) -> list[str]:
    archive = spec.root or spec.initramfs
    return ["-initrd", str(archive)] if archive else []


def _serial(spec: MachineSpec) -> str:
    """The device of the ports, with one interrupt vector per queue.

    With fewer vectors all queues share one, and every interrupt scans all of them
    (virtio_pci_common.c: vp_vring_interrupt).  Each port has two queues, as has the control
    channel; one vector is for configuration changes.  Port 0 is reserved for a console.
    """
    ports = len(port_names(spec)) + spec.streams + 1
    device = f"{_SERIAL},max_ports={ports},vectors={2 * ports + 3}"
    # Under TCG the emulating thread can handle a message itself; an ioeventfd would cost two
    # thread switches.
    return f"{device},ioeventfd=off" if spec.accelerator.name == TCG.name else device


def _ports(spec: MachineSpec, channels: Sequence[int]) -> list[str]:
    words = []
    names = [*port_names(spec), *stream_names(spec)]
    for name, channel in zip(names, channels, strict=True):
        words += ["-chardev", f"socket,id={name},fd={channel}"]
        words += ["-device", f"virtserialport,chardev={name},name={name}"]
    return words


def _export(export: Export) -> list[str]:
    """A 9p device.  Files that the guest creates belong to the user who runs QEMU."""
    access = "" if export.writable else ",readonly=on"
    backend = f"local,id={export.tag},path={_value(export.path)},security_model=none"
    return [
        *("-fsdev", f"{backend},multidevs=remap{access}"),
        *("-device", f"virtio-9p-pci,fsdev={export.tag},mount_tag={export.tag}"),
    ]


def _gdb(spec: MachineSpec) -> list[str]:
    if spec.gdb is None:
        return []
    backend = f"socket,id=gdb,path={_value(spec.gdb)},server=on,wait=off"
    return ["-chardev", backend, "-gdb", "chardev:gdb"]


def find_qemu(qemu: Path | None) -> str:
    """The path of QEMU.  Raises QemuMissing."""
    found = shutil.which(str(qemu) if qemu else QEMU)
    if found is None:
        raise QemuMissing(
            f"{qemu or QEMU} is not installed",
            hint=install_command([QEMU]) if qemu is None else "name a QEMU for this machine",
        )
    return found


def _is_replaced(option: tuple[str, ...]) -> bool:
    name, value = option[0], option[1] if len(option) > 1 else ""
    if name in _REPLACED:
        return True
    if name == "-chardev":
        return "id=dmesg" in value or "id=console" in value
    return name == "-device" and value.startswith("virtconsole")


def _is_export(option: tuple[str, ...]) -> bool:
    """Whether an option exports host files, which a guest with its own root must not see."""
    return option[0] == "-fsdev" or (option[0] == "-device" and option[1].startswith("virtio-9p"))


def _kernel_command_line(spec: MachineSpec, options: tuple[tuple[str, ...], ...]) -> str:
    virtme = next((option[1] for option in options if option[0] == "-append"), "")
    kept = [
        f"{word},{_CACHE}" if word.startswith("rootflags=") else word
        for word in shlex.split(virtme)
        if not word.startswith(_DROPPED)
    ]
    python = spec.python or Path(sys.executable).resolve()
    # Words after "--" are passed to init.  With a root archive the kernel tries rdinit first.
    after = [f"rdinit={python}"] if spec.root else []
    after += [f"init={python}", "--", "-I", "-S", str(_INIT), str(_INIT.parent.parent.parent)]
    words = [_quoted(word) for word in (*kept, *_KERNEL_ARGUMENTS)]
    words += [*spec.append, *map(_quoted, after), *port_names(spec)]
    line = " ".join(words)
    if len(line.encode()) >= COMMAND_LINE_SIZE:
        raise CommandLineTooLong(
            f"the kernel command line has {len(line)} bytes, the limit is {COMMAND_LINE_SIZE - 1}",
            hint="append fewer arguments, or use a shorter path for the checkout",
        )
    return line


def _quoted(word: str) -> str:
    """Quote a word with spaces as lib/cmdline.c: next_arg parses it."""
    if " " not in word:
        return word
    name, equals, value = word.partition("=")
    return f'{name}="{value}"' if equals and " " not in name else f'"{word}"'


def _value(path: Path) -> str:
    """Escape the commas in a value of a QEMU option."""
    return str(path).replace(",", ",,")
