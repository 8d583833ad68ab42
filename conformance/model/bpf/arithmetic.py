"""Instructions of eBPF: arithmetic, byte order, comparisons.

Numbers are unsigned unless stated otherwise.  Source: kernel/bpf/core.c:___bpf_prog_run;
verifier.c:do_misc_fixups, which replaces divisions by zero.
"""

from __future__ import annotations

from conformance.model.errors import NotModelled
from conformance.ops.bpf_opcodes import Alu, Jump


def signed(number: int, bits: int) -> int:
    """An unsigned number of ``bits`` bits as a signed one."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


def swap(number: int, bits: int, *, big: bool) -> int:
    """BPF_END: the low bits of a number in a byte order."""
    low = (number & (1 << bits) - 1).to_bytes(bits // 8, "little")
    return int.from_bytes(low, "big" if big else "little")


def arithmetic(operation: int, left: int, right: int, bits: int) -> int:
    """A 32-bit or 64-bit operation; a 32-bit result is zero-extended."""
    mask = (1 << bits) - 1
    left, right = left & mask, right & mask
    shift = right & bits - 1
    match operation:
        case Alu.ADD:
            answer = left + right
        case Alu.SUB:
            answer = left - right
        case Alu.MUL:
            answer = left * right
        case Alu.DIV:
            answer = left // right if right else 0
        case Alu.MOD:
            answer = left % right if right else left
        case Alu.OR:
            answer = left | right
        case Alu.AND:
            answer = left & right
        case Alu.XOR:
            answer = left ^ right
        case Alu.LSH:
            answer = left << shift
        case Alu.RSH:
            answer = left >> shift
        case Alu.ARSH:
            answer = signed(left, bits) >> shift
        case Alu.NEG:
            answer = -left
        case Alu.MOV:
            answer = right
        case _:
            raise NotModelled(f"operation {operation:#04x}")
    return answer & mask


def compare(operation: int, left: int, right: int) -> bool:
    """Whether a conditional jump is taken."""
    match operation:
        case Jump.JEQ:
            return left == right
        case Jump.JNE:
            return left != right
        case Jump.JGT:
            return left > right
        case Jump.JGE:
            return left >= right
        case Jump.JSET:
            return bool(left & right)
        case Jump.JSGT:
            return signed(left, 64) > signed(right, 64)
        case Jump.JSGE:
            return signed(left, 64) >= signed(right, 64)
    raise NotModelled(f"jump {operation:#04x}")
