"""The command line of QEMU: virtme-ng's, with our init, console and channel in it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from host.arch import CONSOLE, QEMU
from host.packages import install_command
from vm.errors import CommandLineTooLong, QemuMissing
from vm.qemu.accelerator import TCG, Accelerator
from vm.qemu.virtme_ng import Command, virtme_command

#: Names of the virtio-serial ports begin thus; the first is the supervisor's.
PORT = "uevt"
#: x86 COMMAND_LINE_SIZE, bytes including the final NUL.
COMMAND_LINE_SIZE = 2048
_INIT = Path(__file__).parents[1] / "guest" / "init.py"

#: An actor ("" is the supervisor), and calls to it, as for Machine.call.
Request = tuple[str, tuple[Sequence[object], ...]]

#: Options of virtme-ng's command that ours replace.
_REPLACED = frozenset(("-append", "-machine", "-cpu", "-serial", "-mon", "-echr"))
#: What the ports are of.
_SERIAL = "virtio-serial-pci"
#: Kernel arguments of virtme-ng's that would hide or move what the console has to show.
_HIDING = ("quiet", "loglevel=", "console=", "virtme_console=", "init=")
#: The host's files do not change under a guest that only reads them: let it cache and read ahead.
_CACHE = "cache=loose"
#: What the console must show, and that a kernel in trouble ends at once (with -no-reboot).
_KERNEL_ARGUMENTS = (
    f"console={CONSOLE},115200",
    "ignore_loglevel",
    "printk.devkmsg=on",
    "panic=-1",
    "oops=panic",
    # A busy host without KVM may starve the test of the timer interrupt at boot, which
    # ends in a panic ("IO-APIC + timer doesn't work!").
    "no_timer_check",
    # What shows where a kernel hangs: see vm.postmortem.hang.  With a value: one that knows no such
    # argument hands it to init otherwise.
    "unknown_nmi_panic=1",
    "sysrq_always_enabled=1",
    # Who waits for a grace period (synchronize_rcu) waits a fraction of it; what is left for the
    # end of one (call_rcu) comes when it would.
    "rcupdate.rcu_expedited=1",
)


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """Which machine to boot.

    memory_mib is in MiB; actors is how many there can be at a time (each has a port); append holds
    further kernel arguments, quoted as the kernel reads them; python is the interpreter for the
    guest, seen there under the same path (default: the one that runs us); qemu the program
    (default: found on PATH).  root is the archive of the guest's root
    (vm.qemu.root_archive); without one the root is the host's, over 9p.  initramfs is for a kernel
    whose drivers are modules (vm.qemu.initramfs).  cache is the directory for virtme-ng's answers
    (vm.qemu.virtme_ng).  opening holds the first calls to a machine; its state is saved after them.
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


def qemu_argv(
    spec: MachineSpec,
    *,
    console: Path,
    channels: Sequence[int],
    monitor: int,
    state: int | None = None,
) -> list[str]:
    """The command as a list.

    `channels` and `monitor` are the descriptors of QEMU's ends of the ports and of its monitor,
    `state` that of a saved state to begin with in the place of a boot.  Raises QemuMissing,
    VirtmeMissing, CommandLineTooLong.
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
        # Another one each time: a kernel that has a driver for it draws its random numbers anew.
        "-device", "vmgenid,guid=auto",
        *(["-incoming", f"fd:{state}"] if state is not None else _initrd(spec)),
        "-chardev", f"socket,id=monitor,fd={monitor}",
        "-mon", "chardev=monitor,mode=control",
        "-append", _kernel_command_line(spec, options),
    ]
    # fmt: on


def kernel_command_line(spec: MachineSpec) -> str:
    """What the kernel is told.  Raises as qemu_argv."""
    return _kernel_command_line(spec, _virtme_for(spec)[1])


def _virtme_for(spec: MachineSpec) -> Command:
    qemu = find_qemu(spec.qemu)
    return virtme_command(spec.kernel, spec.memory_mib, spec.cpus, qemu, spec.cache)


def port_names(spec: MachineSpec) -> list[str]:
    """The supervisor's port and those of the actors."""
    return [f"{PORT}{number}" for number in range(spec.actors + 1)]


def _initrd(spec: MachineSpec) -> list[str]:
    archive = spec.root or spec.initramfs
    return ["-initrd", str(archive)] if archive else []


def _serial(spec: MachineSpec) -> str:
    """The device of the ports, with an interrupt for each of its queues.

    Of fewer interrupts all queues share one, and for each message the guest looks through all of
    them (virtio_pci_common.c:vp_vring_interrupt).  A port has two queues, two are for control, and
    one interrupt is for the configuration; port 0 is kept for a console.
    """
    ports = len(port_names(spec)) + 1
    device = f"{_SERIAL},max_ports={ports},vectors={2 * ports + 3}"
    # Without its events a message of the guest's wakes QEMU's main loop, which costs two switches
    # between threads: the one that emulates the guest can take it as well.
    return f"{device},ioeventfd=off" if spec.accelerator.name == TCG.name else device


def _ports(spec: MachineSpec, channels: Sequence[int]) -> list[str]:
    words = []
    for name, channel in zip(port_names(spec), channels, strict=True):
        words += ["-chardev", f"socket,id={name},fd={channel}"]
        words += ["-device", f"virtserialport,chardev={name},name={name}"]
    return words


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
    """Whether it shows files of the host to the guest, which one with a root of its own needs not.

    Who mounts them may read them all.
    """
    return option[0] == "-fsdev" or (option[0] == "-device" and option[1].startswith("virtio-9p"))


def _kernel_command_line(spec: MachineSpec, options: tuple[tuple[str, ...], ...]) -> str:
    virtme = next((option[1] for option in options if option[0] == "-append"), "")
    kept = [
        f"{word},{_CACHE}" if word.startswith("rootflags=") else word
        for word in shlex.split(virtme)
        if not word.startswith(_HIDING)
    ]
    python = spec.python or Path(sys.executable).resolve()
    # Words after "--" are the arguments of init; virtme-ng's own init= is gone.
    # With a root of its own the kernel looks for rdinit there, and for init if there is none.
    after = [f"rdinit={python}"] if spec.root else []
    after += [f"init={python}", "--", "-I", "-S", str(_INIT), str(_INIT.parent.parent.parent)]
    words = [_quoted(word) for word in (*kept, *_KERNEL_ARGUMENTS)]
    words += [*spec.append, *map(_quoted, after), port_names(spec)[0]]
    line = " ".join(words)
    if len(line.encode()) >= COMMAND_LINE_SIZE:
        raise CommandLineTooLong(
            f"the kernel command line has {len(line)} bytes, the kernel takes "
            f"{COMMAND_LINE_SIZE - 1}",
            hint="append fewer arguments, or use a shorter path for the checkout",
        )
    return line


def _quoted(word: str) -> str:
    """As lib/cmdline.c:next_arg reads it: quotes around the value keep its spaces."""
    if " " not in word:
        return word
    name, equals, value = word.partition("=")
    return f'{name}="{value}"' if equals and " " not in name else f'"{word}"'


def _value(path: Path) -> str:
    """A path as a value of a QEMU option, where a comma separates."""
    return str(path).replace(",", ",,")
