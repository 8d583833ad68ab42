"""Verifier checks of map values and helper calls."""

from collections.abc import Sequence

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.bpf import Bpf, Map
from conformance.client.tracefs import DATA
from conformance.ops.bpf_assembler import (
    Instruction,
    Label,
    Piece,
    alu64_imm,
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
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R5, R6, R10, Alu, Jump, Size

SPEC = "kernel/bpf/verifier.c:check_func_arg"
DOC = "include/uapi/linux/bpf.h@v4.1: BPF_PROG_LOAD verifies a program before it loads it"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

STRICT = 1
END = [mov64_imm(R0, 0), exit_insn()]


def looking_up(map_: Map, *found: Piece, checked: bool = True) -> list[Piece]:
    """A program that looks up element 0 and continues with the result."""
    return [
        st_mem(Size.DW, R10, -8, 0),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -8),
        ld_map_fd(R1, map_.slot),
        call(1),
        *([jmp_imm(Jump.JEQ, R0, 0, "out")] if checked else []),
        *found,
        Label("out"),
        mov64_imm(R0, 0),
        exit_insn(),
    ]


@case(spec="check_ptr_alignment, check_map_access", tier="quick")
@doc("message of its log: a store of 8 bytes at offset 4 of a value is misaligned")
@variants(
    ("8-bytes", 8, 0, "EACCES"),
    ("8-bytes-strict", 8, STRICT, "EACCES"),
    ("12-bytes", 12, 0, ""),
    ("12-bytes-strict", 12, STRICT, "EACCES"),
    ("11-bytes", 11, 0, "EACCES"),
    ("16-bytes", 16, 0, ""),
    ("16-bytes-strict", 16, STRICT, "EACCES"),
)
def test_message_example(ue: UserEvents, value_size: int, prog_flags: int, errno: str) -> None:
    """Eight bytes at offset 4 of a value must fit; alignment matters only with the flag."""
    system = Bpf(ue.process)
    map_ = system.map(value_size=value_size)
    program = looking_up(map_, st_mem(Size.DW, R0, 4, 0))
    assert system.load(program, prog_flags=prog_flags).errno == errno
    aligned = looking_up(map_, st_mem(Size.W, R0, 4, 0))
    assert system.load(aligned, prog_flags=prog_flags).errno == ""


@case(spec="check_map_access, mark_ptr_or_null_regs")
@variants(
    ("unchecked", [st_mem(Size.B, R0, 0, 0)], False, "EACCES"),
    ("unchecked-read", [ldx_mem(Size.B, R3, R0, 0)], False, "EACCES"),
    ("unused-unchecked", [], False, ""),
    ("last-byte", [st_mem(Size.B, R0, 7, 0)], True, ""),
    ("behind", [st_mem(Size.B, R0, 8, 0)], True, "EACCES"),
    ("over-the-end", [st_mem(Size.W, R0, 6, 0)], True, "EACCES"),
    ("before", [ldx_mem(Size.B, R3, R0, -1)], True, "EACCES"),
    ("misaligned", [ldx_mem(Size.W, R3, R0, 3)], True, ""),
    ("misaligned-add", [mov64_imm(R3, 1), stx_xadd(Size.W, R0, R3, 3)], True, "EACCES"),
    ("moved", [alu64_imm(Alu.ADD, R0, 4), st_mem(Size.W, R0, 0, 0)], True, ""),
    ("moved-behind", [alu64_imm(Alu.ADD, R0, 4), st_mem(Size.DW, R0, 0, 0)], True, "EACCES"),
    ("moved-unchecked", [alu64_imm(Alu.ADD, R0, 4)], False, "EACCES"),
    (
        "checked-the-other-way",
        [jmp_imm(Jump.JNE, R0, 0, "out"), st_mem(Size.B, R0, 0, 0)],
        False,
        "EACCES",
    ),
    (
        "copied-before-checked",
        [mov64_reg(R6, R0), jmp_imm(Jump.JEQ, R0, 0, "out"), st_mem(Size.B, R6, 0, 0)],
        False,
        "",
    ),
    (
        "spilled-before-checked",
        [
            stx_mem(Size.DW, R10, R0, -16),
            jmp_imm(Jump.JEQ, R0, 0, "out"),
            ldx_mem(Size.DW, R3, R10, -16),
            st_mem(Size.B, R3, 0, 0),
        ],
        False,
        "",
    ),
    ("arguments-are-gone", [mov64_reg(R3, R2)], True, "EACCES"),
)
def test_refused_value(ue: UserEvents, found: Sequence[Piece], checked: bool, errno: str) -> None:
    """The result of a lookup must be compared with NULL, then be used within the value."""
    system = Bpf(ue.process)
    program = looking_up(system.map(value_size=8), *found, checked=checked)
    assert system.load(program).errno == errno


@case(spec="check_helper_call", facilities="bpf_tracing")
@doc("enum bpf_func_id: 1 to 3 are about maps, 4 is probe_read")
@variants(
    ("none", 0, 1, "EINVAL"),
    ("unknown", 1_000_000, 1, "EINVAL"),
    ("negative", -1, 1, "EINVAL"),
    ("kprobe-none", 0, 2, "EINVAL"),
    ("lookup-without-map", 1, 1, "EACCES"),
    ("update-without-map", 2, 1, "EACCES"),
    ("delete-without-map", 3, 1, "EACCES"),
    ("kprobe-lookup-without-map", 1, 2, "EACCES"),
    ("probe-read-of-a-filter", 4, 1, "EINVAL"),
    ("probe-read", 4, 2, ""),
)
def test_refused_helper(ue: UserEvents, number: int, kind: int, errno: str) -> None:
    """Helpers 1 to 3 need a map in R1, helper 4 is for tracing only, others are unknown."""
    program = [
        mov64_reg(R1, R10),
        alu64_imm(Alu.ADD, R1, -8),
        mov64_imm(R2, 8),
        mov64_imm(R3, 0),
        call(number),
        *END,
    ]
    assert Bpf(ue.process).load(program, kind).errno == errno


@case(doc="map_lookup_elem(&map, &key), map_update_elem(&map, &key, &value, flags)")
@variants(
    ("good", [], 2, ""),
    ("good-lookup", [], 1, ""),
    ("good-delete", [], 3, ""),
    ("key-a-number", [mov64_imm(R2, 0)], 2, "EACCES"),
    ("key-the-context", [mov64_reg(R2, R6)], 2, "EACCES"),
    ("key-the-map", [mov64_reg(R2, R1)], 1, "EACCES"),
    ("key-at-frame", [mov64_reg(R2, R10)], 3, "EACCES"),
    ("key-above-frame", [mov64_reg(R2, R10), alu64_imm(Alu.ADD, R2, 8)], 1, "EACCES"),
    ("key-too-low", [mov64_reg(R2, R10), alu64_imm(Alu.ADD, R2, -516)], 1, "EACCES"),
    ("value-a-number", [mov64_imm(R3, 0)], 2, "EACCES"),
    ("value-at-frame", [mov64_reg(R3, R10)], 2, "EACCES"),
    ("value-too-low", [mov64_reg(R3, R10), alu64_imm(Alu.ADD, R3, -520)], 2, "EACCES"),
    ("map-a-number", [mov64_imm(R1, 0)], 2, "EACCES"),
    ("map-the-stack", [mov64_reg(R1, R10)], 1, "EACCES"),
    ("lookup-without-value", [mov64_imm(R3, 0)], 1, ""),
)
def test_refused_arguments(
    ue: UserEvents, change: Sequence[Piece], number: int, errno: str
) -> None:
    """Arguments of a helper are a map and pointers to initialized memory of the map's sizes."""
    system = Bpf(ue.process)
    program = [
        mov64_reg(R6, R1),
        *(st_mem(Size.DW, R10, -8 * place, 0) for place in (1, 2)),
        ld_map_fd(R1, system.map(key_size=4, value_size=8).slot),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -4),
        mov64_reg(R3, R10),
        alu64_imm(Alu.ADD, R3, -16),
        mov64_imm(R4, 0),
        *change,
        call(number),
        *END,
    ]
    assert system.load(program).errno == errno


@case(doc="map_update_elem(&map, &key, &value, flags)")
def test_arguments_unset(ue: UserEvents) -> None:
    """An uninitialized argument is EACCES; a register past the last may be uninitialized."""
    system = Bpf(ue.process)
    slot = system.map().slot
    program: list[Piece] = [
        st_mem(Size.DW, R10, -8, 0),
        ld_map_fd(R1, slot),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -8),
    ]
    assert system.load([*program, call(1), *END]).errno == ""
    assert system.load([*program, call(3), *END]).errno == ""
    assert system.load([*program, call(2), *END]).errno == "EACCES"
    program.append(mov64_reg(R3, R2))
    assert system.load([*program, call(2), *END]).errno == "EACCES"
    program.append(mov64_reg(R4, R10))
    assert system.load([*program, call(2), *END]).errno == ""
    assert system.load([*program, call(2), mov64_reg(R0, R5), exit_insn()]).errno == "EACCES"


@case(spec="resolve_pseudo_ldimm64")
def test_refused_map(ue: UserEvents) -> None:
    """A program names its map by descriptor: EBADF if closed, EINVAL if it is no map."""
    system, process = Bpf(ue.process), ue.process
    map_ = system.map()
    assert system.load([ld_map_fd(R1, map_.slot), *END]).errno == ""
    map_.close()
    assert system.load([ld_map_fd(R1, map_.slot), *END]).errno == "EBADF"
    _, file = process.open(DATA)
    assert system.load([ld_map_fd(R1, file), *END]).errno == "EINVAL"
    assert system.load([ld_map_fd(R1, system.load_returning_7().slot), *END]).errno == "EINVAL"
    closed = [Instruction(0x18, R1, 1, imm=-1), Instruction(0), *END]
    assert system.load(closed).errno == "EBADF"
