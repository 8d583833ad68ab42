"""The BPF interpreter and verifier on any programs; the cases have those that mean something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.abi.bpf import ProgramType
from conformance.model.bpf import verifier
from conformance.model.bpf.arithmetic import arithmetic, compare, signed, swap
from conformance.model.bpf.interpreter import Machine, Region
from conformance.model.bpf.maps import Map
from conformance.model.bpf.structure import Refused
from conformance.model.bpf.verifier import Submission
from conformance.model.errors import Errno, NotModelled
from conformance.ops import bpf_assembler as asm
from conformance.ops.bpf_assembler import Instruction
from conformance.ops.bpf_opcodes import R0, R10, Alu, Jump, Size

numbers = st.integers(0, (1 << 64) - 1)
NO_MAPS: dict[int, Map] = {}


def run(program: Sequence[asm.Piece]) -> int:
    """The return value of a program."""
    return Machine(asm.resolve(program), NO_MAPS, Region(bytearray(4))).run()


def is_accepted(program: Sequence[asm.Piece]) -> bool:
    """The verdict of the verifier."""
    kind = ProgramType.SOCKET_FILTER
    submission = Submission(kind, asm.resolve(program), gpl=True, strict=False)
    try:
        verifier.check(submission, _no_map, [])
    except Errno:
        return False
    return True


@given(numbers, numbers)
def test_64_bit_arithmetic_is_modular(left: int, right: int) -> None:
    modulus = 1 << 64
    assert arithmetic(Alu.ADD, left, right, 64) == (left + right) % modulus
    assert arithmetic(Alu.SUB, left, right, 64) == (left - right) % modulus
    assert arithmetic(Alu.MUL, left, right, 64) == left * right % modulus
    assert arithmetic(Alu.ARSH, left, right, 64) == (signed(left, 64) >> right % 64) % modulus
    assert arithmetic(Alu.NEG, left, 0, 64) == -left % modulus
    if right:
        quotient = arithmetic(Alu.DIV, left, right, 64)
        assert quotient * right + arithmetic(Alu.MOD, left, right, 64) == left


@given(st.sampled_from([each for each in Alu if each != Alu.END]), numbers, numbers)
def test_32_bit_arithmetic_uses_the_lower_halves(operation: Alu, left: int, right: int) -> None:
    low = (1 << 32) - 1
    answer = arithmetic(operation, left, right, 32)
    assert answer <= low
    assert answer == arithmetic(operation, left & low, right & low, 32)


@given(numbers, numbers)
def test_comparisons_have_opposites(left: int, right: int) -> None:
    assert compare(Jump.JEQ, left, right) != compare(Jump.JNE, left, right)
    assert compare(Jump.JGT, left, right) != compare(Jump.JGE, right, left)
    assert compare(Jump.JSGT, left, right) != compare(Jump.JSGE, right, left)


@given(numbers, st.sampled_from([16, 32, 64]))
def test_two_swaps_truncate(number: int, bits: int) -> None:
    low = number % (1 << bits)
    assert swap(swap(number, bits, big=True), bits, big=True) == low
    assert swap(number, bits, big=False) == low


def test_uninitialized_stack_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="stack"):
        run([asm.ldx_mem(Size.DW, R0, R10, -8), asm.exit_insn()])


# The interpreter runs whatever the verifier accepts.

registers = st.integers(0, 10)
small = st.integers(-8, 8)
sizes = st.sampled_from(Size)
jumps = st.sampled_from([Jump.JEQ, Jump.JNE, Jump.JSGT])
any_instruction = st.one_of(
    st.builds(asm.alu64_imm, st.sampled_from([Alu.ADD, Alu.MUL, Alu.MOV]), registers, small),
    st.builds(asm.alu64_reg, st.sampled_from([Alu.ADD, Alu.SUB, Alu.MOV]), registers, registers),
    st.builds(asm.alu32_imm, st.sampled_from(list(Alu)[:9]), registers, small),
    st.builds(asm.st_mem, sizes, registers, st.integers(-520, 8), small),
    st.builds(asm.stx_mem, sizes, registers, registers, st.integers(-16, 0)),
    st.builds(asm.ldx_mem, sizes, registers, registers, st.integers(-16, 0)),
    st.builds(asm.jmp_imm, jumps, registers, small, st.integers(0, 4)),
)


@settings(max_examples=500)
@given(st.lists(any_instruction, max_size=12))
def test_verified_programs_run(body: list[Instruction]) -> None:
    program = [asm.mov64_imm(R0, 1), *body, asm.exit_insn()]
    try:
        answer = run(program) if is_accepted(program) else 0
    except NotModelled:
        # A pointer as a number is unknown.
        return
    assert 0 <= answer < 1 << 64


@settings(max_examples=300)
@given(st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=8))
def test_the_verifier_accepts_any_bytes_as_input(raw: list[bytes]) -> None:
    submission = Submission(
        ProgramType.KPROBE, [Instruction.decode(each) for each in raw], gpl=False, strict=False
    )
    log: list[str] = []
    try:
        verifier.check(submission, _no_map, log)
    except (Refused, NotModelled):
        return
    assert log


def _no_map(number: int) -> Map:
    raise Errno("EBADF")
