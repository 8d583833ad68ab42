"""Context of kprobe programs: registers, and kernel memory."""

from conformance.abi.bpf import Helper
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.kprobes import KEY, KPROBE, add_kprobe, listen_to
from conformance.client.bpf import Bpf, Map
from conformance.ops import bpf_assembler
from conformance.ops.bpf_assembler import Piece
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R6, R10, Alu, Jump, Size

case = surface(
    "bpf", level="detail", tier="full", isolation="global", facilities="bpf_tracing kprobes"
)

# struct pt_regs of x86-64: the second to fourth argument of the function.
BUFFER, COUNT, POSITION = 104, 96, 88


def reading(values: Map, source: list[Piece], size: int) -> list[Piece]:
    """A program that probe_reads ``size`` bytes into an array, after the helper's return value.

    ``source`` leaves the address in R3; R6 is the context.
    """
    return [
        bpf_assembler.mov64_reg(R6, R1),
        bpf_assembler.st_mem(Size.DW, R10, -8, -1),
        *source,
        bpf_assembler.mov64_reg(R1, R10),
        bpf_assembler.alu64_imm(Alu.ADD, R1, -8),
        bpf_assembler.mov64_imm(R2, size),
        bpf_assembler.call(Helper.PROBE_READ),
        bpf_assembler.stx_mem(Size.DW, R10, R0, -16),
        bpf_assembler.st_mem(Size.W, R10, -20, 0),
        bpf_assembler.mov64_reg(R2, R10),
        bpf_assembler.alu64_imm(Alu.ADD, R2, -20),
        bpf_assembler.mov64_reg(R3, R10),
        bpf_assembler.alu64_imm(Alu.ADD, R3, -16),
        bpf_assembler.mov64_imm(R4, 0),
        bpf_assembler.ld_map_fd(R1, values.slot),
        bpf_assembler.call(Helper.MAP_UPDATE_ELEM),
        bpf_assembler.mov64_imm(R0, 1),
        bpf_assembler.exit_insn(),
    ]


@case(spec="kernel/trace/bpf_trace.c:bpf_probe_read_compat")
@doc("include/uapi/linux/bpf.h@v4.1:BPF_FUNC_probe_read: copies any memory, safely")
@variants(
    # The file position, 0, on the kernel stack.
    ("kernel", [bpf_assembler.ldx_mem(Size.DW, R3, R6, POSITION)], 8, bytes(16)),
    (
        "kernel.part",
        [bpf_assembler.ldx_mem(Size.DW, R3, R6, POSITION)],
        3,
        bytes(8) + b"\0\0\0\xff\xff\xff\xff\xff",
    ),
    # User memory of the writer, readable on this architecture.
    (
        "user",
        [bpf_assembler.ldx_mem(Size.DW, R3, R6, BUFFER)],
        4,
        bytes(8) + b"\x05\0\0\0\xff\xff\xff\xff",
    ),
    # -EFAULT
    ("null", [bpf_assembler.mov64_imm(R3, 0)], 8, b"\xf2" + b"\xff" * 7 + bytes(8)),
    (
        "unmapped.part",
        [bpf_assembler.mov64_imm(R3, 4096)],
        2,
        b"\xf2" + b"\xff" * 7 + b"\0\0\xff\xff\xff\xff\xff\xff",
    ),
)
def test_kprobe_probe_read(ue: UserEvents, source: list[Piece], size: int, read: bytes) -> None:
    """probe_read copies memory and returns 0; on a fault it returns -EFAULT and writes zeros."""
    data, name = ue.open_data(), add_kprobe(ue)
    system = Bpf(ue.process)
    values = system.array(value_size=16)
    program = system.load(reading(values, source, size), KPROBE)
    assert program.errno == ""
    listen_to(ue.process, name).set_program(program.slot)
    assert data.write(b"\x05\0\0\0").errno == "ENOENT"
    assert values.value(KEY) == read


@case(spec="trace_kprobe.c:kprobe_perf_func")
@doc("include/uapi/linux/bpf.h@v4.1:bpf_prog_type: the context")
@doc("of BPF_PROG_TYPE_KPROBE is struct pt_regs")
def test_kprobe_registers(ue: UserEvents) -> None:
    """The context is the registers: here the count passed to write(2)."""
    data, name = ue.open_data(), add_kprobe(ue)
    system = Bpf(ue.process)
    counts = system.array()
    code: list[Piece] = [
        bpf_assembler.mov64_reg(R6, R1),
        bpf_assembler.st_mem(Size.W, R10, -4, 0),
        bpf_assembler.mov64_reg(R2, R10),
        bpf_assembler.alu64_imm(Alu.ADD, R2, -4),
        bpf_assembler.ld_map_fd(R1, counts.slot),
        bpf_assembler.call(Helper.MAP_LOOKUP_ELEM),
        bpf_assembler.jmp_imm(Jump.JEQ, R0, 0, "end"),
        bpf_assembler.ldx_mem(Size.DW, R1, R6, COUNT),
        bpf_assembler.stx_mem(Size.DW, R0, R1, 0),
        bpf_assembler.Label("end"),
        bpf_assembler.mov64_imm(R0, 0),
        bpf_assembler.exit_insn(),
    ]
    program = system.load(code, KPROBE)
    assert listen_to(ue.process, name).set_program(program.slot).value == 0
    assert data.write(bytes(300)).errno == "ENOENT"
    assert counts.value(KEY) == b"\x2c\x01\0\0\0\0\0\0"
