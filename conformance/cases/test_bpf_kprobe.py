"""Programs of bpf.h on kprobes: when they run, what they answer, when they are gone.

They are tied to an event of perf with PERF_EVENT_IOC_SET_BPF, and run when the probed
function is called: here by a write(2) to user_events_data.
"""

from __future__ import annotations

import os

from conformance.abi.bpf_layouts import Helper
from conformance.cases.declare import case, variants
from conformance.cases.kprobe import (
    KEY,
    KPROBE,
    PLAIN,
    SAMPLE,
    SOCKET_FILTER,
    TRACEPOINT,
    add,
    answering,
    counted,
    listen_to,
    load_counting,
)
from conformance.program import bpf
from conformance.program import operations as op
from conformance.program.bpf import R0, R1, R2, R3, R4, R6, R10, Jump, Piece, Size
from conformance.sut.bpf import Bpf, Map
from conformance.sut.data_file import DataFile
from conformance.sut.perf import open_raw, open_stored, store_id
from conformance.sut.tracefs import KPROBES
from conformance.sut.user_events import UserEvents

PROFILES = "5.18.."
BPF_H = "include/uapi/linux/bpf.h@v4.1:bpf_prog_type"
PERF_H = "include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes the descriptor of "
RUN = "trace_kprobe.c:kprobe_perf_func"
SET_BPF = "kernel/events/core.c:__perf_event_set_bpf_prog"
# struct pt_regs of x86-64: the second to fourth argument of the function.
BUFFER, COUNT, POSITION = 104, 96, 88


def hit(data: DataFile) -> None:
    """Have the function called once: a write(2) that is refused, of an index not registered."""
    assert data.write(b"\0\0\0\0").errno == "ENOENT"


def clean(ue: UserEvents) -> None:
    """Take the probe away, once nothing listens to it."""
    assert ue.tracefs.remove_kprobe(ue.name("k")).ok


@case(
    "bpf.kprobe_stores",
    spec=RUN,
    doc=f"{BPF_H}: BPF_PROG_TYPE_KPROBE: 0 ignores the event, anything else stores it",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
@variants("answer, samples", {"0": (0, 0), "1": (1, 1), "7": (7, 1), "minus-1": (-1, 1)})
def test_kprobe_stores(ue: UserEvents, answer: int, samples: int) -> None:
    """A program on a kprobe that answers 0 has the event ignored, any other answer stored."""
    data, name = ue.open_data(), add(ue)
    event = listen_to(ue.process, name)
    ring = event.map()
    hit(data)
    assert ring.records() == [SAMPLE]
    program, counts = load_counting(Bpf(ue.process), answer=answer)
    assert program.errno == ""
    assert event.set_program(program.slot).value == 0
    hit(data)
    assert counted(counts) == 1
    assert ring.records() == [SAMPLE] + [SAMPLE] * samples
    assert event.count == 1 + samples
    event.close()
    ring.unmap()
    clean(ue)


@case(
    "bpf.kprobe_detaches",
    spec="kernel/events/core.c:perf_event_free_bpf_prog",
    doc=f"{BPF_H}: closing the event of perf takes the program off",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_detaches(ue: UserEvents) -> None:
    """Closing the event takes its program off, which runs no more although it is loaded."""
    data, name = ue.open_data(), add(ue)
    system = Bpf(ue.process)
    program, counts = load_counting(system)
    other = listen_to(ue.process, name)
    event = listen_to(ue.process, name)
    event.set_program(program.slot)
    hit(data)
    assert (counted(counts), other.count) == (1, 1)
    event.close()
    hit(data)
    # The kprobe is still there, and hit.
    assert (counted(counts), other.count) == (1, 2)
    assert other.set_program(program.slot).value == 0
    hit(data)
    assert counted(counts) == 2
    other.close()
    clean(ue)


@case(
    "bpf.kprobe_keeps_program",
    spec=SET_BPF,
    doc=f"{PERF_H}a program, and keeps it",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_keeps_program(ue: UserEvents) -> None:
    """A program runs on after its descriptor was closed, as long as its event is open."""
    data, name = ue.open_data(), add(ue)
    program, counts = load_counting(Bpf(ue.process))
    event = listen_to(ue.process, name)
    event.set_program(program.slot)
    ue.process.run(op.Close(ue.process.actor, program.slot))
    hit(data)
    hit(data)
    assert counted(counts) == 2
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_twice",
    spec="kernel/trace/bpf_trace.c:perf_event_attach_bpf_prog",
    doc=f"{PERF_H}one program",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_twice(ue: UserEvents) -> None:
    """An event takes one program, a kprobe the same program once: the second one is EEXIST."""
    data, name = ue.open_data(), add(ue)
    system = Bpf(ue.process)
    program, counts = load_counting(system)
    another, _ = load_counting(system)
    event, other = listen_to(ue.process, name), listen_to(ue.process, name)
    assert event.set_program(program.slot).value == 0
    assert event.set_program(program.slot).errno == "EEXIST"
    assert event.set_program(another.slot).errno == "EEXIST"
    assert other.set_program(program.slot).errno == "EEXIST"
    hit(data)
    assert counted(counts) == 1
    event.close()
    other.close()
    clean(ue)


@case(
    "bpf.kprobe_two_programs",
    spec="kernel/trace/bpf_trace.c:trace_call_bpf",
    doc=f"{BPF_H}: silent about several programs on one kprobe",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_two_programs(ue: UserEvents) -> None:
    """All programs of a kprobe run at each hit; if one answers 0 all events ignore it."""
    data, name = ue.open_data(), add(ue)
    system = Bpf(ue.process)
    stores, stored = load_counting(system, answer=1)
    ignores, ignored = load_counting(system, answer=0)
    first, second = listen_to(ue.process, name), listen_to(ue.process, name)
    first.set_program(stores.slot)
    hit(data)
    assert (first.count, second.count) == (1, 1)
    second.set_program(ignores.slot)
    hit(data)
    assert (counted(stored), counted(ignored)) == (2, 1)
    assert (first.count, second.count) == (1, 1)
    second.close()
    hit(data)
    assert (counted(stored), counted(ignored), first.count) == (3, 1, 2)
    first.close()
    clean(ue)


@case(
    "bpf.kprobe_everybody",
    spec=RUN,
    doc=f"{BPF_H}: a program runs when the kprobe is hit, by whatever process",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_everybody(ue: UserEvents) -> None:
    """A program runs whichever process hits the kprobe, whatever process its event follows."""
    name = add(ue)
    event = listen_to(ue.process, name)
    program, counts = load_counting(Bpf(ue.process))
    event.set_program(program.slot)
    event.disable()
    hit(ue.new_process().open_data())
    hit(ue.open_data())
    assert (counted(counts), event.count) == (2, 0)
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_apart",
    spec=RUN,
    doc=f"{BPF_H}: a program runs when its kprobe is hit",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_apart(ue: UserEvents) -> None:
    """A program runs at calls of its function alone: an ioctl or a writev hits nothing here."""
    data, name = ue.open_data(), add(ue)
    event = listen_to(ue.process, name)
    program, counts = load_counting(Bpf(ue.process))
    event.set_program(program.slot)
    data.register(ue.name())
    data.writev([b"\0\0", b"\0\0"])
    assert counted(counts) == 0
    # Called, and refused by the function itself.
    assert data.pwrite(b"\0\0\0\0", 8).errno == "EFAULT"
    assert counted(counts) == 1
    # Refused before.
    assert data.write_at(0xFFFF_8000_0000_0000, 4).errno == "EFAULT"
    assert counted(counts) == 1
    event.close()
    clean(ue)


# What programs see


def reading(values: Map, source: list[Piece], size: int) -> list[Piece]:
    """A program that probe_reads ``size`` bytes into an array, behind what the helper answered.

    ``source`` leaves the address in R3; R6 is the context.
    """
    return [
        bpf.mov64_reg(R6, R1),
        bpf.st_mem(Size.DW, R10, -8, -1),
        *source,
        bpf.mov64_reg(R1, R10),
        bpf.alu64_imm(bpf.Alu.ADD, R1, -8),
        bpf.mov64_imm(R2, size),
        bpf.call(Helper.PROBE_READ),
        bpf.stx_mem(Size.DW, R10, R0, -16),
        bpf.st_mem(Size.W, R10, -20, 0),
        bpf.mov64_reg(R2, R10),
        bpf.alu64_imm(bpf.Alu.ADD, R2, -20),
        bpf.mov64_reg(R3, R10),
        bpf.alu64_imm(bpf.Alu.ADD, R3, -16),
        bpf.mov64_imm(R4, 0),
        bpf.ld_map_fd(R1, values.slot),
        bpf.call(Helper.MAP_UPDATE_ELEM),
        bpf.mov64_imm(R0, 1),
        bpf.exit_insn(),
    ]


@case(
    "bpf.kprobe_probe_read",
    spec="kernel/trace/bpf_trace.c:bpf_probe_read_compat",
    doc="include/uapi/linux/bpf.h@v4.1:BPF_FUNC_probe_read: copies any memory, safely",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
@variants(
    "source, size, read",
    {
        # The position of the file, 0, on the kernel's stack.
        "kernel": ([bpf.ldx_mem(Size.DW, R3, R6, POSITION)], 8, bytes(16)),
        "kernel.part": (
            [bpf.ldx_mem(Size.DW, R3, R6, POSITION)],
            3,
            bytes(8) + b"\0\0\0\xff\xff\xff\xff\xff",
        ),
        # Of the process that writes, on this architecture.
        "user": (
            [bpf.ldx_mem(Size.DW, R3, R6, BUFFER)],
            4,
            bytes(8) + b"\x05\0\0\0\xff\xff\xff\xff",
        ),
        # -EFAULT
        "null": ([bpf.mov64_imm(R3, 0)], 8, b"\xf2" + b"\xff" * 7 + bytes(8)),
        "unmapped.part": (
            [bpf.mov64_imm(R3, 4096)],
            2,
            b"\xf2" + b"\xff" * 7 + b"\0\0\xff\xff\xff\xff\xff\xff",
        ),
    },
)
def test_kprobe_probe_read(ue: UserEvents, source: list[Piece], size: int, read: bytes) -> None:
    """probe_read copies memory and answers 0; where it cannot, -EFAULT, and zeros instead."""
    data, name = ue.open_data(), add(ue)
    system = Bpf(ue.process)
    values = system.array(value_size=16)
    program = system.load(reading(values, source, size), KPROBE)
    assert program.errno == ""
    event = listen_to(ue.process, name)
    event.set_program(program.slot)
    assert data.write(b"\x05\0\0\0").errno == "ENOENT"
    assert values.value(KEY) == read
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_registers",
    spec=RUN,
    doc=f"{BPF_H}: the context of BPF_PROG_TYPE_KPROBE is struct pt_regs",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_registers(ue: UserEvents) -> None:
    """The context of a program are the registers: here the count that write(2) was called with."""
    data, name = ue.open_data(), add(ue)
    system = Bpf(ue.process)
    counts = system.array()
    code: list[Piece] = [
        bpf.mov64_reg(R6, R1),
        bpf.st_mem(Size.W, R10, -4, 0),
        bpf.mov64_reg(R2, R10),
        bpf.alu64_imm(bpf.Alu.ADD, R2, -4),
        bpf.ld_map_fd(R1, counts.slot),
        bpf.call(Helper.MAP_LOOKUP_ELEM),
        bpf.jmp_imm(Jump.JEQ, R0, 0, "end"),
        bpf.ldx_mem(Size.DW, R1, R6, COUNT),
        bpf.stx_mem(Size.DW, R0, R1, 0),
        bpf.Label("end"),
        bpf.mov64_imm(R0, 0),
        bpf.exit_insn(),
    ]
    program = system.load(code, KPROBE)
    event = listen_to(ue.process, name)
    assert event.set_program(program.slot).value == 0
    assert data.write(bytes(300)).errno == "ENOENT"
    assert counts.value(KEY) == b"\x2c\x01\0\0\0\0\0\0"
    event.close()
    clean(ue)


# What is refused


@case(
    "bpf.kprobe_version",
    spec="kernel/bpf/syscall.c:bpf_prog_load",
    doc=f"{BPF_H}, kern_version: the release a program was made for, checked until 5.0",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
@variants("version", {"0": 0, "4.1.0": 0x040100, "all-bits": 0xFFFF_FFFF})
def test_kprobe_version(ue: UserEvents, version: int) -> None:
    """A program on a kprobe that names another release, or none, is loaded and runs."""
    data, name = ue.open_data(), add(ue)
    program = Bpf(ue.process).load(answering(0), KPROBE, kern_version=version)
    assert program.errno == ""
    event = listen_to(ue.process, name)
    assert event.set_program(program.slot).value == 0
    hit(data)
    assert event.count == 0
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_wrong_program",
    spec=SET_BPF,
    doc=f"{PERF_H}a program that is made for a kprobe",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
@variants("kind", {"socket_filter": SOCKET_FILTER, "tracepoint": TRACEPOINT})
def test_kprobe_wrong_program(ue: UserEvents, kind: int) -> None:
    """A program that was made for something else than a kprobe is EINVAL, and does not run."""
    data, name = ue.open_data(), add(ue)
    program = Bpf(ue.process).load(answering(0), kind)
    assert program.errno == ""
    event = listen_to(ue.process, name)
    assert event.set_program(program.slot).errno == "EINVAL"
    hit(data)
    assert event.count == 1
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_no_program",
    spec="kernel/bpf/syscall.c:bpf_prog_get",
    doc=f"{PERF_H}a program",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_no_program(ue: UserEvents) -> None:
    """The descriptor of anything else than a program is EINVAL, and none EBADF."""
    name = add(ue)
    event = listen_to(ue.process, name)
    map_ = Bpf(ue.process).array()
    assert event.set_program(map_.slot).errno == "EINVAL"
    assert event.set_program(event.slot).errno == "EINVAL"
    assert event.set_program(ue.open_data(os.O_RDONLY).slot).errno == "EINVAL"
    map_.close()
    assert event.set_program(map_.slot).errno == "EBADF"
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_not_traced",
    spec="kernel/events/core.c:perf_event_set_bpf_handler",
    doc=f"{PERF_H}a program, for events of the kernel's tracing",
    profiles=PROFILES,
    isolation="none",
    facilities=("bpf_tracing",),
)
@variants("kind", {"kprobe": KPROBE, "tracepoint": TRACEPOINT, "socket_filter": SOCKET_FILTER})
def test_kprobe_not_traced(ue: UserEvents, kind: int) -> None:
    """An event that is neither of tracing nor a kprobe takes none of these programs: EINVAL."""
    # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.
    event = open_raw(ue.process, 1, 9)
    assert event.errno == ""
    program = Bpf(ue.process).load(answering(1), kind)
    assert program.errno == ""
    assert event.set_program(program.slot).errno == "EINVAL"


@case(
    "bpf.kprobe_unprivileged",
    spec="kernel/bpf/syscall.c:bpf_prog_load; kernel/events/core.c:perf_allow_kernel",
    doc=f"{BPF_H}: silent about rights",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_unprivileged(ue: UserEvents) -> None:
    """Without capabilities programs on kprobes are EPERM, and events on them EACCES."""
    data, name = ue.open_data(), add(ue)
    user = ue.new_process()
    store_id(user, name, PLAIN, KPROBES)
    user.setuid(1000)
    assert Bpf(user).load(answering(1), KPROBE).errno == "EPERM"
    assert open_stored(user, PLAIN).errno == "EACCES"
    hit(data)
    clean(ue)


@case(
    "bpf.kprobe_handed_down",
    spec=SET_BPF,
    doc=f"{PERF_H}a program; silent about rights",
    profiles=PROFILES,
    isolation="global",
    facilities=("bpf_tracing", "kprobes"),
)
def test_kprobe_handed_down(ue: UserEvents) -> None:
    """Who was given both descriptors ties them together without any right of its own."""
    data, name = ue.open_data(), add(ue)
    program, counts = load_counting(Bpf(ue.process))
    event = listen_to(ue.process, name)
    child = ue.fork(ue.process)
    child.setuid(1000)
    assert event.of(child).set_program(program.slot).value == 0
    hit(data)
    assert counted(counts) == 1
    child.exit()
    event.close()
    clean(ue)


@case(
    "bpf.kprobe_busy",
    spec="trace_kprobe.c:unregister_trace_kprobe",
    doc="Documentation/trace/kprobetrace.rst@v6.12: -:GROUP/EVENT removes a probe",
    profiles=PROFILES,
    isolation="global",
    facilities=("perf", "kprobes"),
)
def test_kprobe_busy(ue: UserEvents) -> None:
    """A kprobe that perf listens to is EBUSY to whoever removes it; gone, its id is EINVAL."""
    name = add(ue)
    event = listen_to(ue.process, name)
    assert ue.tracefs.remove_kprobe(name).errno == "EBUSY"
    event.close()
    assert store_id(ue.process, name, PLAIN, KPROBES).value == 8
    clean(ue)
    assert open_stored(ue.process, PLAIN).errno == "EINVAL"
    assert ue.tracefs.remove_kprobe(name).errno == "ENOENT"
