"""Helpers 1 to 3, called by programs: lookup, update and delete of map elements."""

import struct

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.bpf_arithmetic_programs import Computer, keep
from conformance.client.bpf import Bpf, Map
from conformance.ops.bpf_assembler import (
    Label,
    Piece,
    alu64_imm,
    call,
    jmp_imm,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    stx_mem,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R6, R7, R8, R10, Alu, Jump, Size

SPEC = "kernel/bpf/helpers.c:bpf_map_lookup_elem, bpf_map_update_elem, bpf_map_delete_elem"
DOC = "include/uapi/linux/bpf.h@v4.1: enum bpf_func_id: lookup, update and delete are 1, 2 and 3"
case = surface("bpf", SPEC, DOC, level="detail", tier="full", isolation="none", facilities="bpf")

LOOKUP, UPDATE, DELETE = 1, 2, 3
# Negative errnos in 64 bits.
E2BIG = (1 << 64) - 7
EEXIST = (1 << 64) - 17
EINVAL = (1 << 64) - 22
ENOENT = (1 << 64) - 2


def number(value: int) -> bytes:
    """Eight bytes, little endian."""
    return struct.pack("<Q", value)


def calling(map_: Map, helper: int, flags: int = 0) -> list[Piece]:
    """Call a helper with the low half of R6 as key and R7 as value; its result is in R0."""
    return [
        stx_mem(Size.W, R10, R6, -100),
        stx_mem(Size.DW, R10, R7, -112),
        ld_map_fd(R1, map_.slot),
        *(mov64_reg(R2, R10), alu64_imm(Alu.ADD, R2, -100)),
        *(mov64_reg(R3, R10), alu64_imm(Alu.ADD, R3, -112)),
        mov64_imm(R4, flags),
        call(helper),
    ]


@case
@variants({"hash": 1, "array": 2})
def test_helper_lookup(ue: UserEvents, kind: int) -> None:
    """Lookup returns a pointer to the value, which can be stored to, or NULL."""
    map_ = Bpf(ue.process).map(kind)
    map_.update(b"\1\0\0\0", number(1000))
    computer = Computer(
        ue,
        *calling(map_, LOOKUP),
        jmp_imm(Jump.JEQ, R0, 0, "missing"),
        ldx_mem(Size.DW, R8, R0, 0),
        stx_mem(Size.DW, R0, R7, 0),
        *(keep(0, R8), ldx_mem(Size.DW, R8, R0, 0), keep(1, R8)),
        Label("missing"),
        *(mov64_imm(R8, 5), keep(2, R8)),
    )
    assert computer.run(1, 2000)[:3] == [1000, 2000, 5]
    assert map_.value(b"\1\0\0\0") == b"\xd0\7\0\0\0\0\0\0"
    assert computer.run(9, 3000)[:3] == [0, 0, 5]
    assert map_.value(b"\1\0\0\0") == b"\xd0\7\0\0\0\0\0\0"


@case
@variants(
    ("any", 0, [0, 0, 0, E2BIG]),
    ("noexist", 1, [0, EEXIST, 0, E2BIG]),
    ("exist", 2, [ENOENT, ENOENT, ENOENT, ENOENT]),
    ("reserved", 3, [EINVAL, EINVAL, EINVAL, EINVAL]),
)
def test_helper_update(ue: UserEvents, flags: int, answers: list[int]) -> None:
    """Update takes the flags of the system call, and returns its errors."""
    map_ = Bpf(ue.process).map(max_entries=2)
    computer = Computer(ue, *calling(map_, UPDATE, flags), keep(0, R0))
    seen = [computer.run(key, value)[0] for key, value in ((1, 10), (1, 11), (2, 20), (3, 30))]
    assert seen == answers
    first = {0: number(11), 1: number(10)}
    assert map_.value(b"\1\0\0\0") == first.get(flags)


@case
def test_helper_update_array(ue: UserEvents) -> None:
    """Updating an array past its end returns -E2BIG, with NOEXIST -EEXIST."""
    map_ = Bpf(ue.process).array(max_entries=2)
    computer = Computer(
        ue,
        *(*calling(map_, UPDATE, 0), keep(0, R0)),
        *(*calling(map_, UPDATE, 1), keep(1, R0)),
        *(*calling(map_, UPDATE, 2), keep(2, R0)),
        *(*calling(map_, DELETE), keep(3, R0)),
    )
    assert computer.run(1, 77)[:4] == [0, EEXIST, 0, EINVAL]
    assert map_.value(b"\1\0\0\0") == b"\x4d\0\0\0\0\0\0\0"
    assert computer.run(2, 78)[:4] == [E2BIG, E2BIG, E2BIG, EINVAL]


@case
def test_helper_delete(ue: UserEvents) -> None:
    """Deleting an element returns 0, and -ENOENT once it is gone."""
    map_ = Bpf(ue.process).map()
    map_.update(b"\1\0\0\0", number(1))
    map_.update(b"\2\0\0\0", number(2))
    computer = Computer(ue, *calling(map_, DELETE), keep(0, R0))
    assert computer.run(1)[0] == 0
    assert map_.lookup(b"\1\0\0\0").errno == "ENOENT"
    assert computer.run(1)[0] == ENOENT
    assert map_.value(b"\2\0\0\0") == b"\2\0\0\0\0\0\0\0"


@case
def test_helpers_together(ue: UserEvents) -> None:
    """In one run an element is created, found, deleted, and no longer found."""
    map_ = Bpf(ue.process).map()
    computer = Computer(
        ue,
        *(*calling(map_, UPDATE, 1), keep(0, R0)),
        *calling(map_, LOOKUP),
        jmp_imm(Jump.JEQ, R0, 0, "missing"),
        *(ldx_mem(Size.DW, R8, R0, 0), keep(1, R8)),
        Label("missing"),
        *(*calling(map_, DELETE), keep(2, R0)),
        *(*calling(map_, LOOKUP), mov64_imm(R8, 3)),
        jmp_imm(Jump.JNE, R0, 0, "found"),
        mov64_imm(R8, 4),
        Label("found"),
        keep(3, R8),
    )
    assert computer.run(5, 1234)[:4] == [0, 1234, 0, 4]
    assert map_.next_key(None).errno == "ENOENT"
