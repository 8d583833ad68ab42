"""Known bugs are neither mistakes of the program, nor are they missed where they are fixed."""

from __future__ import annotations

import struct

import pytest

from conformance.abi import uapi
from conformance.programs.judgement import Judgement, Verdict
from conformance.programs.known_bugs import judged
from conformance.programs.text import lines_of, verdict
from tests.programs.made import DATA, ROOT, WORD, Made, memory
from tests.programs.recordings import PROFILE
from vm.recorder.recording import groups

EBADF, ENOTTY = -9, -25
STRUCTURE, NAME = 0x7000, 0x6000
# The numbers of a 32-bit program have the size of its pointers.
REGISTER = uapi.DIAG_IOCSREG - (4 << 16)


def register_32(made: Made, result: int, size: int = 28) -> Made:
    """DIAG_IOCSREG of a 32-bit program."""
    structure = memory(STRUCTURE, struct.pack("<IBBHQQI", size, 31, 4, 0, WORD, NAME, 0))
    before = [
        f"credentials {ROOT}",
        structure,
        f"rights {STRUCTURE:x} rw-p",
        memory(NAME, b"e u32 a\0"),
        memory(WORD, bytes(8)),
        f"rights {WORD:x} rw-p",
    ]
    return made.call(
        16,
        *(3, REGISTER, STRUCTURE),
        result=result,
        compat=1,
        file=(3, DATA),
        before=before,
        after=[structure],
    )


def judgement_of(made: Made) -> Judgement:
    """The judgement with known bugs."""
    return judged(PROFILE, lambda: groups(made.lines()))


def test_a_correct_call_that_a_known_bug_refuses_is_no_mistake() -> None:
    judgement = judgement_of(register_32(Made().open(), ENOTTY))
    assert [each.bug for each in judgement.of(Verdict.REFUSED)] == ["compat-ioctl"]
    assert "2 calls, 1 refused because of known bugs of the kernel; 0 events" in verdict(judgement)
    text = "\n".join(lines_of(judgement))
    assert "the kernel refuses because of a known bug\n  ioctl = -1 ENOTTY: this file" in text
    assert "programs (bug compat-ioctl)" in text
    assert "mistake" not in text


def test_a_mistake_is_one_without_the_bug_too() -> None:
    judgement = judgement_of(register_32(Made().open(), ENOTTY, size=2))
    assert [each.bug for each in judgement.of(Verdict.REFUSED)] == [""]
    assert "1 refused as the ABI says: mistakes of the program" in verdict(judgement)


def test_a_kernel_without_a_known_bug_does_not_deviate() -> None:
    # The event is disabled: the index is known.
    made = register_32(Made().open(), 0).write(compat=1, result=EBADF)
    judgement = judgement_of(made)
    assert [each.verdict for each in judgement.calls][1:] == [Verdict.ALLOWED, Verdict.REFUSED]
    assert dict(judgement.remarks) == {"the kernel does not have the known bug compat-ioctl": 1}


@pytest.mark.parametrize("result", [-22, 4])
def test_another_answer_is_a_deviation(result: int) -> None:
    judgement = judgement_of(register_32(Made().open(), result))
    assert len(judgement.of(Verdict.DEVIATES)) == 1
    assert not judgement.remarks
