"""Runtime detection of optional kernel features (perf, BPF, kprobes, io_uring).

One program of generic calls, run before the first case that needs a feature; the model never sees
it.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from errno import EFAULT, ENOSYS
from typing import Any

from conformance.abi.bpf import ATTR_SIZE, PROG_LOAD, Command, ProgramType
from conformance.cases.case import Facility
from conformance.client import tracefs
from conformance.client.addresses import PAGE, READ_WRITE, SCRATCH
from conformance.ops import bpf_assembler
from conformance.ops.calls import Call, sys_call
from conformance.runner.guest_executor import Channel

_GAUGE = "uevt_facilities"
# MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE.
_FIXED = 0x100022
_CODE, _LICENSE = SCRATCH + 256, SCRATCH + 512
_NO_COMMAND = 1000
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
# The highest possible processor number (drivers/base/cpu.c:kernel_max).
_LAST_PROCESSOR = "/sys/devices/system/cpu/kernel_max"
_KPROBE = f"{tracefs.KPROBES}/{_GAUGE}"
_SIGKILL = 9
# An event of every kernel with tracing (include/trace/events/sched.h).
_SOME_EVENT = "sched/sched_switch"

_PERF, _BPF = "CONFIG_PERF_EVENTS=y", "CONFIG_BPF_SYSCALL=y"
_KPROBES = "CONFIG_KPROBE_EVENTS=y"
_IO_URING = "CONFIG_IO_URING=y"
# Configuration lines that imply a feature; CONFIG_BPF_EVENTS cannot be set directly.
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
}


def promised_by(configuration: Collection[str]) -> frozenset[Facility]:
    """The features of a kernel whose guest has these lines of configuration."""
    lines = frozenset(configuration)
    return frozenset(facility for facility, needed in _PROMISES.items() if needed <= lines)


def facilities_of(channel: Channel) -> frozenset[Facility]:
    """The features of the kernel of a guest.  Raises what the channel raises."""
    channel.call("", [["spawn", _GAUGE]])
    instructions = bpf_assembler.assemble(
        [bpf_assembler.mov64_imm(bpf_assembler.R0, 0), bpf_assembler.exit_insn()]
    )
    program = PROG_LOAD.pack(
        {
            "prog_type": ProgramType.TRACEPOINT,
            "insn_cnt": len(instructions) // bpf_assembler.INSTRUCTION_SIZE,
            "insns": _CODE,
            "license": _LICENSE,
        }
    )
    results = channel.call(
        _GAUGE,
        [
            sys_call("mmap", SCRATCH, PAGE, READ_WRITE, _FIXED, -1, 0),
            ["slurp", _PARANOID, PAGE],
            sys_call("bpf", _NO_COMMAND, SCRATCH, ATTR_SIZE),
            ["poke", SCRATCH, program.hex()],
            ["poke", _CODE, instructions.hex()],
            ["poke", _LICENSE, b"GPL\0".hex()],
            sys_call("bpf", Command.PROG_LOAD, SCRATCH, ATTR_SIZE, slot=0),
            _command(tracefs.KPROBE_EVENTS, f"p:{_KPROBE} user_events_write\n"),
            _command(tracefs.KPROBE_EVENTS, f"-:{_KPROBE}\n"),
            _command(tracefs.DYNAMIC_EVENTS, f"e:{_KPROBE} {_SOME_EVENT.replace('/', '.')}\n"),
            _command(tracefs.DYNAMIC_EVENTS, f"-:{_KPROBE}\n"),
            ["slurp", f"{tracefs.ROOT}/events/{_SOME_EVENT}/hist", PAGE],
            ["slurp", tracefs.SNAPSHOT, PAGE],
            # Without a buffer for the answer: EFAULT if the call exists and is allowed.
            sys_call("io_uring_setup", 1, 0),
            ["slurp", _LAST_PROCESSOR, PAGE],
        ],
    )
    channel.call("", [["kill", _GAUGE, _SIGKILL]])
    _, paranoid, command, _, _, _, loaded, probed, _, *others = map(_errno, results)
    eprobed, _, hist, snapshot, ring, _ = others
    last = bytes.fromhex(results[-1]["data"] or "")
    found = {
        Facility.PERF: not paranoid,
        Facility.BPF: command != ENOSYS,
        Facility.BPF_TRACING: not paranoid and not loaded,
        Facility.KPROBES: not probed,
        Facility.IO_URING: ring == EFAULT,
        Facility.EPROBES: not eprobed,
        Facility.HIST: not hist,
        Facility.SNAPSHOT: not snapshot,
        Facility.SMP: last.strip() not in (b"", b"0"),
    }
    return frozenset(facility for facility, there in found.items() if there)


def _command(path: str, text: str) -> Call:
    return ["spill", path, text.encode().hex(), os.O_WRONLY | os.O_APPEND]


def _errno(result: dict[str, Any]) -> int:
    return int(result["errno"])
