"""Jumps of eBPF programs, executed, and return values."""

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.bpf_arithmetic_programs import Computer, keep
from conformance.client.bpf import Bpf
from conformance.ops.bpf_assembler import (
    Label,
    Piece,
    alu64_imm,
    alu64_reg,
    exit_insn,
    ja,
    jmp_imm,
    jmp_reg,
    ldx_mem,
    mov64_imm,
)
from conformance.ops.bpf_opcodes import R0, R1, R6, R7, R8, R9, Alu, Jump, Size

SPEC = "kernel/bpf/core.c:___bpf_prog_run"
DOC = "include/uapi/linux/bpf.h@v4.1: BPF_CALL calls a function, BPF_EXIT returns"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")


def taken(*jumps: tuple[Jump, int | None]) -> list[Piece]:
    """Whether each of up to eight jumps is taken, comparing R6 with R7 or an immediate."""
    program: list[Piece] = []
    for number, (jump, constant) in enumerate(jumps):
        to = f"behind-{number}"
        program.append(mov64_imm(R8, 1))
        if constant is None:
            program.append(jmp_reg(jump, R6, R7, to))
        else:
            program.append(jmp_imm(jump, R6, constant, to))
        program += [mov64_imm(R8, 0), Label(to), keep(number, R8)]
    return program


COMPARING = (Jump.JEQ, Jump.JNE, Jump.JGT, Jump.JGE, Jump.JSET, Jump.JSGT, Jump.JSGE)
MINUS = 0xFFFF_FFFF_FFFF_FFFF


@case(doc="BPF_JNE, and BPF_JSGT and BPF_JSGE with signs, next to those of classic BPF")
@variants(
    ("minus-one-and-one", MINUS, 1, [0, 1, 1, 1, 1, 0, 0]),
    ("equal", 6, 6, [1, 0, 0, 1, 1, 0, 1]),
    ("zero", 0, 0, [1, 0, 0, 1, 0, 0, 1]),
    ("one-and-minus-one", 1, MINUS, [0, 1, 0, 0, 1, 1, 1]),
    ("upper-half", 1 << 32, 2 << 32, [0, 1, 0, 0, 0, 0, 0]),
    ("no-common-bit", 5, 2, [0, 1, 1, 1, 0, 1, 1]),
    ("least-and-greatest", 1 << 63, (1 << 63) - 1, [0, 1, 1, 1, 0, 0, 0]),
)
def test_jumps(ue: UserEvents, left: int, right: int, expected: list[int]) -> None:
    """EQ, NE, GT, GE, SET, SGT and SGE compare all 64 bits of two registers."""
    computer = Computer(ue, *taken(*((jump, None) for jump in COMPARING)))
    assert computer.run(left, right)[:7] == expected


@case(doc="BPF_JNE, and BPF_JSGT and BPF_JSGE with signs, next to those of classic BPF")
@variants(
    ("minus-two", MINUS - 1, [1, 0, 0, 1, 1, 0, 1]),
    ("minus-one", MINUS, [0, 1, 1, 1, 1, 1, 1]),
    ("one", 1, [0, 1, 0, 0, 0, 1, 1]),
    ("lower-half", 0xFFFF_FFFE, [0, 1, 0, 0, 1, 1, 1]),
    ("least", 1 << 63, [0, 1, 0, 0, 1, 0, 0]),
)
def test_jumps_by_number(ue: UserEvents, left: int, expected: list[int]) -> None:
    """The immediate -2 is sign-extended to 64 bits before the comparison."""
    computer = Computer(ue, *taken(*((jump, -2) for jump in COMPARING)))
    assert computer.run(left)[:7] == expected


@case(doc="off is signed")
def test_jump_back(ue: UserEvents) -> None:
    """Backward jumps are allowed if the verifier sees the end: a loop of five rounds."""
    computer = Computer(
        ue,
        *(mov64_imm(R8, 0), mov64_imm(R9, 0)),
        Label("again"),
        alu64_reg(Alu.ADD, R8, R6),
        alu64_imm(Alu.ADD, R9, 1),
        jmp_imm(Jump.JNE, R9, 5, "again"),
        *(keep(0, R8), keep(1, R9)),
        ja("store"),
    )
    assert computer.run(100)[:2] == [500, 5]


@case(spec="net/core/filter.c:sk_filter_trim_cap", tier="quick")
@variants(
    ("some", 3, b"abc"),
    ("none", 0, None),
    ("all", 6, b"abcdef"),
    ("more", 7, b"abcdef"),
    ("minus-one", -1, b"abcdef"),
)
def test_exit(ue: UserEvents, answer: int, left: bytes | None) -> None:
    """A socket filter returns how many bytes of a datagram to keep, 0 for none."""
    system = Bpf(ue.process)
    assert system.run(system.load([mov64_imm(R0, answer), exit_insn()]), b"abcdef") == left


@case(spec="net/core/filter.c:sk_filter_trim_cap")
def test_exit_lower_half(ue: UserEvents) -> None:
    """Only the low 32 bits of a filter's return value count: without them it is dropped."""
    system = Bpf(ue.process)
    program = system.load([mov64_imm(R0, 1), alu64_imm(Alu.LSH, R0, 32), exit_insn()])
    assert system.run(program, b"abcdef") is None
    program = system.load(
        [mov64_imm(R0, -3), alu64_imm(Alu.LSH, R0, 32), alu64_imm(Alu.OR, R0, 2), exit_insn()]
    )
    assert system.run(program, b"abcdef") == b"ab"


@case(spec="net/core/filter.c:sk_filter_is_valid_access")
def test_context(ue: UserEvents) -> None:
    """R1 points to a filter's context, whose first four bytes are the length of the datagram."""
    system = Bpf(ue.process)
    program = system.load([ldx_mem(Size.W, R0, R1, 0), alu64_imm(Alu.SUB, R0, 2), exit_insn()])
    assert system.run(program, b"abcdef") == b"abcd"
    assert system.run(program, b"ab") is None
    assert system.run(program, b"a") == b"a"
