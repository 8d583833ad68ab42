"""The eBPF assembler against literal bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ops import bpf_assembler as asm
from conformance.ops.bpf_assembler import Instruction, Label
from conformance.ops.bpf_opcodes import TO_BE, TO_LE, Alu, Jump, Size

instructions = st.builds(
    Instruction,
    code=st.integers(0, 255),
    dst=st.integers(0, 15),
    src=st.integers(0, 15),
    off=st.integers(-(1 << 15), (1 << 15) - 1),
    imm=st.integers(-(1 << 31), (1 << 31) - 1),
)


@pytest.mark.parametrize(
    ("piece", "code"),
    [
        (asm.mov64_imm(0, 7), "b7 00 0000 07000000"),
        (asm.mov64_reg(2, 10), "bf a2 0000 00000000"),
        (asm.alu64_imm(Alu.ADD, 2, -8), "07 02 0000 f8ffffff"),
        (asm.alu64_reg(Alu.SUB, 1, 9), "1f 91 0000 00000000"),
        (asm.alu32_imm(Alu.ARSH, 3, 4), "c4 03 0000 04000000"),
        (asm.alu32_reg(Alu.XOR, 3, 4), "ac 43 0000 00000000"),
        (asm.neg64(5), "87 05 0000 00000000"),
        (asm.endian(TO_LE, 6, 16), "d4 06 0000 10000000"),
        (asm.endian(TO_BE, 6, 64), "dc 06 0000 40000000"),
        (asm.st_mem(Size.DW, 10, -8, 0), "7a 0a f8ff 00000000"),
        (asm.stx_mem(Size.W, 10, 3, -4), "63 3a fcff 00000000"),
        (asm.ldx_mem(Size.H, 3, 10, -2), "69 a3 feff 00000000"),
        (asm.ldx_mem(Size.B, 3, 1, 5), "71 13 0500 00000000"),
        (asm.stx_xadd(Size.DW, 0, 6, 8), "db 60 0800 00000000"),
        (asm.stx_xadd(Size.W, 0, 6, 8), "c3 60 0800 00000000"),
        (asm.ld_imm64(1, 0x1122334455667788), "18 01 0000 88776655 00 00 0000 44332211"),
        (asm.jmp_imm(Jump.JEQ, 0, 0, 1), "15 00 0100 00000000"),
        (asm.jmp_reg(Jump.JSGE, 1, 2, -3), "7d 21 fdff 00000000"),
        (asm.jmp_imm(Jump.JNE, 4, -5, 2), "55 04 0200 fbffffff"),
        (asm.jmp_imm(Jump.JSGT, 4, 5, 2), "65 04 0200 05000000"),
        (asm.ja(4), "05 00 0400 00000000"),
        (asm.call(1), "85 00 0000 01000000"),
        (asm.exit_insn(), "95 00 0000 00000000"),
    ],
)
def test_instruction_encoding(piece: asm.Piece, code: str) -> None:
    assert asm.assemble([piece]) == bytes.fromhex(code)


@given(instructions)
def test_decoding_inverts_encoding(instruction: Instruction) -> None:
    raw = instruction.encode()
    assert len(raw) == 8
    assert Instruction.decode(raw) == instruction


def test_labels_take_no_slot_and_wide_loads_two() -> None:
    program: list[asm.Piece] = [
        Label("again"),
        asm.ja("end"),
        asm.ld_imm64(1, 5),
        asm.jmp_imm(Jump.JEQ, 1, 5, "again"),
        Label("end"),
        asm.exit_insn(),
    ]
    assert [each.off for each in asm.resolve(program)] == [3, 0, 0, -4, 0]


def test_an_unknown_label_is_an_error() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        asm.assemble([asm.ja("nowhere")])


def test_descriptors_are_located_at_their_loads() -> None:
    program: list[asm.Piece] = [
        asm.mov64_imm(0, 0),
        asm.ld_map_fd(1, 7),
        asm.exit_insn(),
        asm.ld_map_fd(2, 9),
    ]
    assert asm.descriptors(program) == [(12, 7), (36, 9)]
    assert asm.assemble(program)[8:16] == bytes.fromhex("18 11 0000 00000000")
