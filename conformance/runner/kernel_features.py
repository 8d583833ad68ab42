"""Runtime detection of optional kernel features (perf, BPF, kprobes, io_uring, …).

One program of generic calls, run before the first case that needs a feature; the model never sees
it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection
from errno import EFAULT, ENOSYS, ENOTDIR
from signal import SIGKILL
from typing import Any

from conformance.abi.bpf import ATTR_SIZE, PROG_LOAD, Command, ProgramType
from conformance.cases.case import Facility
from conformance.client import tracefs
from conformance.client.addresses import PAGE, READ_WRITE, SCRATCH
from conformance.ops import bpf_assembler
from conformance.ops.bpf_opcodes import R0
from conformance.ops.calls import AT_FDCWD, Call, bytes_in, fd, path_in, sys_call
from conformance.ops.credentials import CLONE_NEWUSER
from conformance.ops.memory import DEVICE_MEMORY
from conformance.runner.guest import Guest
from conformance.runner.guest_setup import text_of

_GAUGE = "uevt_facilities"
# MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE.
_FIXED = 0x100022
# MAP_SHARED | MAP_FIXED_NOREPLACE.
_SHARED = 0x100001
_DEVICE, _PROGRAM = 1, 2
_CODE, _LICENSE, _ARGUMENTS = SCRATCH + 256, SCRATCH + 512, SCRATCH + 768
_AT_EMPTY_PATH = 0x1000
_NO_COMMAND = 1000
_USER = 1000
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
# The highest possible processor number (drivers/base/cpu.c:kernel_max).
_LAST_PROCESSOR = "/sys/devices/system/cpu/kernel_max"
_PROBE = f"{tracefs.KPROBES}/{_GAUGE}"
_KPROBES_FILE, _DYNAMIC = tracefs.KPROBE_EVENTS, tracefs.DYNAMIC_EVENTS
# An event of every kernel with tracing (include/trace/events/sched.h).
_SOME_EVENT = "sched/sched_switch"

_PERF, _BPF = "CONFIG_PERF_EVENTS=y", "CONFIG_BPF_SYSCALL=y"
_KPROBES = "CONFIG_KPROBE_EVENTS=y"
_IO_URING = "CONFIG_IO_URING=y"
_Result = dict[str, Any]
_Test = tuple[Facility, Callable[[_Result], bool]]
# Configuration lines that imply a feature; CONFIG_BPF_EVENTS cannot be set directly.  None implies
# that memory of a device may be mapped, which CONFIG_IO_STRICT_DEVMEM forbids, that 32-bit
# programs run, which ia32_emulation=off on the command line forbids, or that an option is off.
_PROMISES = {
    Facility.PERF: {_PERF},
    Facility.BPF: {_BPF},
    Facility.BPF_TRACING: {_PERF, _BPF, _KPROBES},
    Facility.KPROBES: {_KPROBES},
    Facility.IO_URING: {_IO_URING},
    # CONFIG_PROBE_EVENTS cannot be set directly: kprobes or uprobes select it.
    Facility.EPROBES: {_KPROBES},
    Facility.HIST: {"CONFIG_HIST_TRIGGERS=y"},
    Facility.SNAPSHOT: {"CONFIG_TRACER_SNAPSHOT=y"},
    Facility.SMP: {"CONFIG_SMP=y"},
    Facility.USER_NAMESPACES: {"CONFIG_USER_NS=y"},
}


def promised_by(configuration: Collection[str]) -> frozenset[Facility]:
    """The features of a kernel whose guest has these lines of configuration."""
    lines = frozenset(configuration)
    return frozenset(facility for facility, needed in _PROMISES.items() if needed <= lines)


def facilities_of(guest: Guest) -> frozenset[Facility]:
    """The features of the kernel of a guest.  Raises what the guest raises."""
    guest.call("", [["spawn", _GAUGE]])
    trials = _trials()
    results = guest.call(_GAUGE, [call for call, _ in trials])
    guest.call("", [["kill", _GAUGE, SIGKILL]])
    tested = zip(results, (test for _, test in trials), strict=True)
    found = {test[0] for result, test in tested if test is not None and test[1](result)}
    # KASAN keeps what is freed for a while (mm/kasan/quarantine.c).
    if not guest.configured("CONFIG_KASAN"):
        found.add(Facility.FREED_MEMORY)
    # A program on an event needs an event of perf.
    return frozenset(found - {Facility.BPF_TRACING} if Facility.PERF not in found else found)


def _trials() -> list[tuple[Call, _Test | None]]:
    """Calls to try, each with the feature that it tests, None for a preparation."""
    instructions = bpf_assembler.assemble(
        [bpf_assembler.mov64_imm(R0, 0), bpf_assembler.exit_insn()]
    )
    program = PROG_LOAD.pack(
        {
            "prog_type": ProgramType.TRACEPOINT,
            "insn_cnt": len(instructions) // bpf_assembler.INSTRUCTION_SIZE,
            "insns": _CODE,
            "license": _LICENSE,
        }
    )
    load = sys_call("bpf", Command.PROG_LOAD, SCRATCH, ATTR_SIZE, slot=0)
    event = _SOME_EVENT.replace("/", ".")
    return [
        (sys_call("mmap", SCRATCH, PAGE, READ_WRITE, _FIXED, -1, 0), None),
        (["slurp", _PARANOID, PAGE], (Facility.PERF, _succeeds)),
        (sys_call("bpf", _NO_COMMAND, SCRATCH, ATTR_SIZE), (Facility.BPF, _is_implemented)),
        (["poke", SCRATCH, program.hex()], None),
        (["poke", _CODE, instructions.hex()], None),
        (["poke", _LICENSE, b"GPL\0".hex()], None),
        (load, (Facility.BPF_TRACING, _succeeds)),
        (_command(_KPROBES_FILE, f"p:{_PROBE} user_events_write\n"), (Facility.KPROBES, _succeeds)),
        (_command(_KPROBES_FILE, f"-:{_PROBE}\n"), None),
        (_command(_DYNAMIC, f"e:{_PROBE} {event}\n"), (Facility.EPROBES, _succeeds)),
        (_command(_DYNAMIC, f"-:{_PROBE}\n"), None),
        (["slurp", f"{tracefs.ROOT}/events/{_SOME_EVENT}/hist", PAGE], (Facility.HIST, _succeeds)),
        (["slurp", tracefs.SNAPSHOT, PAGE], (Facility.SNAPSHOT, _succeeds)),
        # The call exists and is allowed: it misses its buffer.
        (sys_call("io_uring_setup", 1, 0), (Facility.IO_URING, _fails_with(EFAULT))),
        (["slurp", _LAST_PROCESSOR, PAGE], (Facility.SMP, _is_positive)),
        (sys_call("openat", AT_FDCWD, path_in(DEVICE_MEMORY), os.O_RDWR, 0, slot=_DEVICE), None),
        (
            sys_call("mmap", SCRATCH + PAGE, PAGE, READ_WRITE, _SHARED, fd(_DEVICE), 0),
            (Facility.DEVICE_MEMORY, _succeeds),
        ),
        (sys_call("memfd_create", path_in(""), 0, slot=_PROGRAM), None),
        (sys_call("write", fd(_PROGRAM), bytes_in(_IA32_PROGRAM), len(_IA32_PROGRAM)), None),
        (["poke", _ARGUMENTS, struct.pack("<2Q", _ARGUMENTS + 8, 0).hex()], None),
        (
            sys_call("execveat", fd(_PROGRAM), path_in(""), _ARGUMENTS, 0, _AT_EMPTY_PATH),
            # The kernel runs the program, which misses its interpreter (load_elf_binary).
            (Facility.IA32, _fails_with(ENOTDIR)),
        ),
        # Forbidden by user.max_user_namespaces, in a chroot, and on some systems to ordinary users.
        # The last: it drops capabilities.
        (sys_call("setresuid", _USER, _USER, _USER), None),
        (sys_call("unshare", CLONE_NEWUSER), (Facility.USER_NAMESPACES, _succeeds)),
    ]


def _ia32_program() -> bytes:
    """A program for i386 (elf(5)) that cannot start: its interpreter does not exist."""
    interpreter = b"/dev/null/ld.so\0"
    header = b"\x7fELF" + bytes([1, 1, 1]).ljust(12, b"\0")
    # ET_EXEC, EM_386, and one program header: PT_INTERP.
    header += struct.pack("<2H5I6H", 2, 3, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = len(interpreter)
    return header + struct.pack("<8I", 3, 84, 0, 0, size, size, 4, 1) + interpreter


_IA32_PROGRAM = _ia32_program()


def _succeeds(result: _Result) -> bool:
    return not result["errno"]


def _is_implemented(result: _Result) -> bool:
    return bool(result["errno"] != ENOSYS)


def _fails_with(errno: int) -> Callable[[_Result], bool]:
    return lambda result: bool(result["errno"] == errno)


def _is_positive(result: _Result) -> bool:
    return text_of(result).strip() not in ("", "0")


def _command(path: str, text: str) -> Call:
    return ["spill", path, text.encode().hex(), os.O_WRONLY | os.O_APPEND]
