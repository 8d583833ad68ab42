"""Loads, stores and registers of eBPF programs, executed."""

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.bpf_arithmetic_programs import Computer, keep
from conformance.client.bpf import Bpf
from conformance.ops.bpf_assembler import (
    Label,
    alu64_imm,
    alu64_reg,
    call,
    exit_insn,
    jmp_imm,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
    stx_mem,
    stx_xadd,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, Alu, Jump, Size

SPEC = "kernel/bpf/core.c:___bpf_prog_run"
DOC = "include/uapi/linux/bpf.h@v4.1: BPF_DW is the fourth size, next to those of classic BPF"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

NUMBER = 0x1122_3344_F5F6_F7F8
PLACE = -128


@case
def test_load_sizes(ue: UserEvents) -> None:
    """Loads of 8, 4, 2 and 1 bytes, little endian, zero the rest of their register."""
    computer = Computer(
        ue,
        stx_mem(Size.DW, R10, R6, PLACE),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(0, R8)),
        *(ldx_mem(Size.W, R8, R10, PLACE), keep(1, R8)),
        *(ldx_mem(Size.H, R8, R10, PLACE), keep(2, R8)),
        *(ldx_mem(Size.B, R8, R10, PLACE), keep(3, R8)),
        *(ldx_mem(Size.W, R8, R10, PLACE + 4), keep(4, R8)),
        *(ldx_mem(Size.H, R8, R10, PLACE + 6), keep(5, R8)),
        *(ldx_mem(Size.B, R8, R10, PLACE + 7), keep(6, R8)),
    )
    assert computer.run(NUMBER)[:7] == [
        *(0x11223344F5F6F7F8, 0xF5F6F7F8, 0xF7F8, 0xF8),
        *(0x11223344, 0x1122, 0x11),
    ]


@case
@variants(
    ("dw", Size.DW, 0x11223344F5F6F7F8, 0xFFFFFFFFFFFFFFFE),
    ("w", Size.W, 0xFFFFFFFFF5F6F7F8, 0xFFFFFFFFFFFFFFFE),
    ("h", Size.H, 0xFFFFFFFFFFFFF7F8, 0xFFFFFFFFFFFFFFFE),
    ("b", Size.B, 0xFFFFFFFFFFFFFFF8, 0xFFFFFFFFFFFFFFFE),
)
def test_store_sizes(ue: UserEvents, size: Size, stored: int, number: int) -> None:
    """A store writes as many bytes as its size, from a register or a signed immediate."""
    computer = Computer(
        ue,
        *(st_mem(Size.DW, R10, PLACE + 8 * place, -1) for place in range(-1, 3)),
        stx_mem(size, R10, R6, PLACE),
        st_mem(size, R10, PLACE + 8, -2),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(0, R8)),
        *(ldx_mem(Size.DW, R8, R10, PLACE + 8), keep(1, R8)),
        *(ldx_mem(Size.DW, R8, R10, PLACE - 8), keep(2, R8)),
        *(ldx_mem(Size.DW, R8, R10, PLACE + 16), keep(3, R8)),
    )
    untouched = [0xFFFFFFFFFFFFFFFF] * 2
    assert computer.run(NUMBER)[:4] == [stored, number, *untouched]


@case
def test_store_number_is_signed(ue: UserEvents) -> None:
    """The immediate of a store has 32 bits and is sign-extended to 8 bytes."""
    computer = Computer(
        ue,
        st_mem(Size.DW, R10, PLACE, -(1 << 31)),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(0, R8)),
        st_mem(Size.DW, R10, PLACE, (1 << 31) - 1),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(1, R8)),
    )
    assert computer.run()[:2] == [0xFFFFFFFF80000000, 0x7FFFFFFF]


@case(doc="ten general registers of 64 bits, and R10, the frame")
def test_whole_stack(ue: UserEvents) -> None:
    """The stack has 512 bytes, all below R10."""
    computer = Computer(
        ue,
        stx_mem(Size.DW, R10, R6, -512),
        stx_mem(Size.B, R10, R7, -257),
        *(ldx_mem(Size.DW, R8, R10, -512), keep(0, R8)),
        *(ldx_mem(Size.B, R8, R10, -257), keep(1, R8)),
        mov64_reg(R9, R10),
        alu64_imm(Alu.ADD, R9, -500),
        *(ldx_mem(Size.W, R8, R9, -8), keep(2, R8)),
    )
    assert computer.run(NUMBER, 0x77)[:3] == [0x11223344F5F6F7F8, 0x77, 0x11223344]


@case(doc="BPF_XADD is an exclusive add")
def test_exclusive_add(ue: UserEvents) -> None:
    """An atomic add of 8 or 4 bytes changes memory, not its register, without carrying further."""
    computer = Computer(
        ue,
        stx_mem(Size.DW, R10, R6, PLACE),
        stx_xadd(Size.DW, R10, R7, PLACE),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(0, R8), keep(1, R7)),
        stx_mem(Size.DW, R10, R6, PLACE),
        stx_xadd(Size.W, R10, R7, PLACE),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(2, R8)),
        stx_xadd(Size.W, R10, R7, PLACE + 4),
        *(ldx_mem(Size.DW, R8, R10, PLACE), keep(3, R8)),
    )
    assert computer.run(0x1_FFFF_FFFF, 0x2_0000_0001)[:4] == [
        *(0x400000000, 0x200000001, 0x100000000, 0x200000000)
    ]


@case(doc="BPF_XADD is an exclusive add")
def test_exclusive_add_to_map(ue: UserEvents) -> None:
    """Every datagram adds its length to an element, which user space reads and sets."""
    system = Bpf(ue.process)
    map_ = system.array(max_entries=2)
    program = system.load(
        [
            ldx_mem(Size.W, R6, R1, 0),
            st_mem(Size.W, R10, -4, 1),
            mov64_reg(R2, R10),
            alu64_imm(Alu.ADD, R2, -4),
            ld_map_fd(R1, map_.slot),
            call(1),
            jmp_imm(Jump.JEQ, R0, 0, "out"),
            stx_xadd(Size.DW, R0, R6, 0),
            Label("out"),
            mov64_imm(R0, 0),
            exit_insn(),
        ]
    )
    assert program.errno == ""
    pair = system.pair()
    pair.attach(program)
    for datagram in (b"four", b"", b"thirteen more"):
        assert pair.send(datagram).value == len(datagram)
    assert map_.value(b"\1\0\0\0") == b"\x11\0\0\0\0\0\0\0"
    map_.update(b"\1\0\0\0", b"\xff" * 8)
    pair.send(b"three" + b"!")
    assert map_.value(b"\1\0\0\0") == b"\5\0\0\0\0\0\0\0"
    assert map_.value(b"\0\0\0\0") == bytes(8)


@case(doc="ten general registers of 64 bits, and R10, the frame")
def test_registers(ue: UserEvents) -> None:
    """Eight registers hold eight numbers at once, along with a ninth and the frame pointer."""
    registers = (R0, R1, R2, R3, R4, R5, R8, R9)
    computer = Computer(
        ue,
        *(mov64_imm(register, 100 + register) for register in registers),
        *(alu64_reg(Alu.ADD, register, R6) for register in registers),
        *(keep(number, register) for number, register in enumerate(registers)),
    )
    assert computer.run(1000) == [1100, 1101, 1102, 1103, 1104, 1105, 1108, 1109]


@case(doc="BPF_CALL calls a function, BPF_EXIT returns")
def test_registers_kept(ue: UserEvents) -> None:
    """A call preserves R6 to R9 and the stack, and returns its result in R0."""
    map_ = Bpf(ue.process).map()
    computer = Computer(
        ue,
        *(mov64_imm(R8, 8), mov64_imm(R9, 9)),
        st_mem(Size.W, R10, -100, 77),
        ld_map_fd(R1, map_.slot),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -100),
        call(1),
        *(keep(0, R0), keep(1, R6), keep(2, R7), keep(3, R8), keep(4, R9)),
        *(ldx_mem(Size.W, R8, R10, -100), keep(5, R8)),
    )
    assert computer.run(6, 7)[:6] == [0, 6, 7, 8, 9, 77]
