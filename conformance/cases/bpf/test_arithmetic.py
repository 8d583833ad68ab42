"""Arithmetic of eBPF programs, executed: register values afterwards."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.bpf_arithmetic_programs import Computer, keep
from conformance.ops.bpf_assembler import (
    alu32_imm,
    alu32_reg,
    alu64_imm,
    alu64_reg,
    endian,
    ld_imm64,
    mov64_imm,
    mov64_reg,
    neg64,
)
from conformance.ops.bpf_opcodes import R6, R7, R8, TO_BE, TO_LE, Alu

SPEC = "kernel/bpf/core.c:___bpf_prog_run"
DOC = (
    "include/uapi/linux/bpf.h@v4.1: BPF_ALU64 is arithmetic of 64 bits; BPF_MOV and BPF_ARSH came "
    "with it"
)
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

LEFT = 0xFEDC_BA98_F654_3217
RIGHT = 0x0000_0001_9000_0003

# Per operation: 64 bits with a register, 64 bits with -3, 32 bits with either.
TABLE = {
    "add": (Alu.ADD, 0xFEDCBA9A8654321A, 0xFEDCBA98F6543214, 0x8654321A, 0xF6543214),
    "sub": (Alu.SUB, 0xFEDCBA9766543214, 0xFEDCBA98F654321A, 0x66543214, 0xF654321A),
    "mul": (Alu.MUL, 0xFD79BE0ED2FC9645, 0x0369D0351D0369BB, 0xD2FC9645, 0x1D0369BB),
    "div": (Alu.DIV, 0x00000000A31CA060, 0x0000000000000000, 0x00000001, 0x00000000),
    "mod": (Alu.MOD, 0x000000010CFE50F7, 0xFEDCBA98F6543217, 0x66543214, 0xF6543217),
    "or": (Alu.OR, 0xFEDCBA99F6543217, 0xFFFFFFFFFFFFFFFF, 0xF6543217, 0xFFFFFFFF),
    "and": (Alu.AND, 0x0000000090000003, 0xFEDCBA98F6543215, 0x90000003, 0xF6543215),
    "xor": (Alu.XOR, 0xFEDCBA9966543214, 0x0123456709ABCDEA, 0x66543214, 0x09ABCDEA),
    "mov": (Alu.MOV, 0x0000000190000003, 0xFFFFFFFFFFFFFFFD, 0x90000003, 0xFFFFFFFD),
}


@case
@variants({name: (row[0], row[1:]) for name, row in TABLE.items()})
def test_alu(ue: UserEvents, operation: Alu, expected: tuple[int, int, int, int]) -> None:
    """An operation takes a register or a signed immediate; of 32 bits, the upper half is zero."""
    computer = Computer(
        ue,
        mov64_reg(R8, R6),
        alu64_reg(operation, R8, R7),
        keep(0, R8),
        mov64_reg(R8, R6),
        alu64_imm(operation, R8, -3),
        keep(1, R8),
        mov64_reg(R8, R6),
        alu32_reg(operation, R8, R7),
        keep(2, R8),
        mov64_reg(R8, R6),
        alu32_imm(operation, R8, -3),
        keep(3, R8),
        keep(4, R6),
        keep(5, R7),
    )
    results = computer.run(LEFT, RIGHT)
    assert tuple(results[:4]) == expected
    assert results[4:6] == [0xFEDC_BA98_F654_3217, 0x0000_0001_9000_0003]


@case
@variants(
    (
        *("by-4", LEFT, 4),
        (0xEDCBA98F65432170, 0x0FEDCBA98F654321, 0xFFEDCBA98F654321),
        (0x65432170, 0x0F654321, 0xFF654321),
    ),
    (
        *("by-0", LEFT, 0),
        (0xFEDCBA98F6543217, 0xFEDCBA98F6543217, 0xFEDCBA98F6543217),
        (0xF6543217, 0xF6543217, 0xF6543217),
    ),
    (
        *("by-31", LEFT, 31),
        (0x7B2A190B80000000, 0x00000001FDB97531, 0xFFFFFFFFFDB97531),
        (0x80000000, 0x00000001, 0xFFFFFFFF),
    ),
    (
        *("by-63", 0x80000000C0000001, 63),
        (0x8000000000000000, 0x0000000000000001, 0xFFFFFFFFFFFFFFFF),
        (0x80000000, 0x00000001, 0xFFFFFFFF),
    ),
)
def test_shift(
    ue: UserEvents, left: int, right: int, wide: tuple[int, ...], narrow: tuple[int, ...]
) -> None:
    """Shifts are left, logical right and arithmetic right; in 32 bits the count has 5 bits."""
    program = []
    for number, shift in enumerate((Alu.LSH, Alu.RSH, Alu.ARSH)):
        program += [mov64_reg(R8, R6), alu64_reg(shift, R8, R7), keep(number, R8)]
        program += [mov64_reg(R8, R6), alu32_reg(shift, R8, R7), keep(3 + number, R8)]
    assert Computer(ue, *program).run(left, right)[:6] == [*wide, *narrow]


@case
def test_shift_by_number(ue: UserEvents) -> None:
    """Shifts by an immediate go up to the width minus one."""
    program = []
    shifts = ((Alu.LSH, 63), (Alu.RSH, 60), (Alu.ARSH, 60), (Alu.ARSH, 0))
    for number, (shift, count) in enumerate(shifts):
        program += [mov64_reg(R8, R6), alu64_imm(shift, R8, count), keep(number, R8)]
    narrow = ((Alu.LSH, 31), (Alu.RSH, 28), (Alu.ARSH, 31))
    for number, (shift, count) in enumerate(narrow):
        program += [mov64_reg(R8, R6), alu32_imm(shift, R8, count), keep(4 + number, R8)]
    expected = [0x8000000000000000, 0xF, 0xFFFFFFFFFFFFFFFF, 0xFEDCBA98F6543211]
    expected += [0x80000000, 0xF, 0xFFFFFFFF]
    assert Computer(ue, *program).run(0xFEDC_BA98_F654_3211)[:7] == expected


@case(spec="kernel/bpf/verifier.c:do_misc_fixups")
@doc("silent; a program is not ended by it any more")
def test_division_by_zero(ue: UserEvents) -> None:
    """Division by zero is zero, modulo zero is the dividend; in 32 bits its low half."""
    program = []
    for number, operation in enumerate((Alu.DIV, Alu.MOD)):
        program += [mov64_reg(R8, R6), alu64_reg(operation, R8, R7), keep(number, R8)]
        program += [mov64_reg(R8, R6), alu32_reg(operation, R8, R7), keep(2 + number, R8)]
    computer = Computer(ue, *program)
    assert computer.run(LEFT, 0)[:4] == [0, 0xFEDC_BA98_F654_3217, 0, 0xF654_3217]
    # In 32 bits this divisor is zero as well, in 64 bits it is not.
    assert computer.run(LEFT, 1 << 32)[:4] == [0xFEDC_BA98, 0xF654_3217, 0, 0xF654_3217]


@case
def test_division_unsigned(ue: UserEvents) -> None:
    """Division is unsigned: -2 / 3 is two thirds of 2^64."""
    program = []
    for number, operation in enumerate((Alu.DIV, Alu.MOD)):
        program += [mov64_reg(R8, R6), alu64_imm(operation, R8, 3), keep(number, R8)]
        program += [mov64_reg(R8, R6), alu32_imm(operation, R8, 3), keep(2 + number, R8)]
    expected = [0x5555555555555554, 2, 0x55555554, 2]
    assert Computer(ue, *program).run(0xFFFF_FFFF_FFFF_FFFE)[:4] == expected


@case
def test_negation(ue: UserEvents) -> None:
    """A number and its negation add up to zero, in 64 and in 32 bits."""
    computer = Computer(
        ue,
        *(mov64_reg(R8, R6), neg64(R8), keep(0, R8)),
        *(mov64_reg(R8, R6), alu32_imm(Alu.NEG, R8, 0), keep(1, R8)),
    )
    assert computer.run(1)[:2] == [0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF]
    assert computer.run(1 << 63)[:2] == [0x8000000000000000, 0]
    assert computer.run(0xFFFF_FFFF_0000_0000)[:2] == [0x1_0000_0000, 0]
    assert computer.run(0)[:2] == [0, 0]


@case(doc="BPF_END brings a register into an order, BPF_TO_LE or BPF_TO_BE")
def test_byte_order(ue: UserEvents) -> None:
    """To little endian truncates a register to 16, 32 or 64 bits, to big endian swaps these."""
    program = []
    for number, (order, bits) in enumerate(
        [(TO_LE, 16), (TO_LE, 32), (TO_LE, 64), (TO_BE, 16), (TO_BE, 32), (TO_BE, 64)]
    ):
        program += [mov64_reg(R8, R6), endian(order, R8, bits), keep(number, R8)]
    assert Computer(ue, *program).run(0x0102_0304_A5A6_A7A8)[:6] == [
        *(0xA7A8, 0xA5A6A7A8, 0x01020304A5A6A7A8),
        *(0xA8A7, 0xA8A7A6A5, 0xA8A7A6A504030201),
    ]


@case
def test_numbers(ue: UserEvents) -> None:
    """A 32-bit immediate is sign-extended to 64 bits, not in 32; a 64-bit one takes two slots."""
    computer = Computer(
        ue,
        *(mov64_imm(R8, -1), keep(0, R8)),
        *(mov64_imm(R8, -(1 << 31)), keep(1, R8)),
        *(alu32_imm(Alu.MOV, R8, -1), keep(2, R8)),
        *(ld_imm64(R8, 0x1122_3344_5566_7788), keep(3, R8)),
        *(ld_imm64(R8, 0xFFFF_FFFF_8000_0000), keep(4, R8)),
        *(ld_imm64(R8, 0x8000_0000), keep(5, R8)),
    )
    assert computer.run()[:6] == [
        *(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF80000000, 0xFFFFFFFF),
        *(0x1122334455667788, 0xFFFFFFFF80000000, 0x80000000),
    ]


@case(doc="registers have 64 bits; arithmetic of 32 is that of classic BPF")
def test_upper_half(ue: UserEvents) -> None:
    """Every 32-bit operation clears the upper half of its register."""
    program = []
    operations = [Alu.ADD, Alu.SUB, Alu.OR, Alu.XOR, Alu.LSH, Alu.RSH, Alu.ARSH]
    for number, operation in enumerate(operations):
        program += [mov64_reg(R8, R6), alu32_imm(operation, R8, 0), keep(number, R8)]
    program += [mov64_reg(R8, R6), alu32_reg(Alu.MOV, R8, R8), keep(7, R8)]
    assert Computer(ue, *program).run(0xFFFF_FFFF_8000_0001) == [0x8000_0001] * 8
