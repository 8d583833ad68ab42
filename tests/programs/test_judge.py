"""Recorded programs: the verdict of the kernel's real answers, and of wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.programs.judgement import Verdict
from conformance.programs.text import lines_of, verdict
from tests.programs.recordings import judged, replaced

Change = Callable[[list[str]], list[str]]
WORD = "memory 555c40b44054 8 "
CLEAR, SET = f"{WORD}0000000000000000", f"{WORD}0000008000000000"
ALLOWED = "6 calls, all as the ABI allows; 1 event, 3 records read back byte for byte"


def without(text: str) -> Change:
    """Leave the first line with a text out."""

    def change(lines: list[str]) -> list[str]:
        lines.remove(next(line for line in lines if text in line))
        return lines

    return change


@pytest.mark.parametrize(
    ("name", "calls", "refused", "read_back"),
    [
        ("bit_31", 6, 0, "1 event, 3 records"),
        ("long_structure", 5, 2, "1 event, 1 record"),
        ("parts", 6, 1, "1 event, 3 records"),
        ("parts_perf", 6, 1, "1 event, 3 records"),
        ("passed", 7, 1, "2 events, 2 records"),
        ("spellings", 14, 3, "4 events, 5 records"),
        ("status_page", 4, 2, "0 events, 0 records"),
        ("status_bits_6.1", 5, 0, "1 event, 1 record"),
        ("status_page_6.1", 4, 1, "0 events, 0 records"),
        ("spellings_static_6.1", 9, 8, "0 events, 0 records"),
        ("bit_31_6.1", 3, 2, "0 events, 0 records"),
        ("formats", 13, 1, "4 events, 5 records"),
        ("formats_perf", 13, 1, "4 events, 5 records"),
        ("tasks", 70, 3, "5 events, 32 records"),
        ("deletes", 8, 3, "1 event, 0 records"),
    ],
)
def test_answers_of_the_kernel_are_allowed(
    name: str, calls: int, refused: int, read_back: str
) -> None:
    judgement = judged(name)
    mistakes = f"{refused} refused as the ABI says: mistakes of the program"
    judged_calls = f"{calls} calls, {mistakes if refused else 'all as the ABI allows'}"
    whole = "" if read_back.endswith(" 0 records") else " byte for byte"
    assert verdict(judgement) == f"{judged_calls}; {read_back} read back{whole}"
    assert judgement.of(Verdict.DEVIATES) == []
    assert not judgement.not_judged
    assert not judgement.remarks
    assert judgement.complete


@pytest.mark.parametrize(
    ("change", "name", "field"),
    [
        (replaced(SET, CLEAR), "ioctl(DIAG_IOCSREG)", "memory p1 0x555c40b44054 after the"),
        (replaced(CLEAR, SET, 2), "ioctl(DIAG_IOCSUNREG)", "memory p1 0x555c40b44054"),
        (replaced("55000000000000\n", "55000001000000\n", 1), "ioctl(DIAG_IOCSREG)", "memory p1"),
        (replaced("exit 39 8", "exit 39 4"), "write", "value"),
        (replaced("exit 39 8", "exit 39 -22"), "write", "errno"),
        (without("page "), "write", "records"),
        (replaced("01000000\n", "02000000\n", 1), "write", "payload of the record of bit_31"),
        (replaced("enable user_events 0", "enable user_events 22"), "ioctl(DIAG_IOCSREG)", "errno"),
        (replaced("exit 39 3", "exit 39 -22"), "openat", "errno"),
    ],
)
def test_a_wrong_answer_is_the_kernels_deviation(change: Change, name: str, field: str) -> None:
    judgement = judged("bit_31", change)
    call = judgement.of(Verdict.DEVIATES)[0]
    assert call.name == name
    assert call.step.differences[0].field.startswith(field)
    assert "the kernel deviates from the ABI in 1" in verdict(judgement)


def test_a_wrong_answer_of_an_interface_without_enable_words_is_a_deviation() -> None:
    """The recording has no memory at what would be the address of the word."""

    def refused(lines: list[str]) -> list[str]:
        call = next(number for number, line in enumerate(lines) if " 16 0 4 c0082a00 " in line)
        end = next(number for number, line in enumerate(lines) if number > call and "exit" in line)
        return [*lines[:end], "exit 38 -22\n", *lines[end + 1 :]]

    call = judged("status_bits_6.1", refused).of(Verdict.DEVIATES)[0]
    assert call.name == "ioctl(DIAG_IOCSREG)"
    assert [each.field for each in call.step.differences] == ["errno"]


def test_another_event_in_a_record_is_a_deviation() -> None:
    judgement = judged("spellings", replaced("page ", "page ", 0))
    assert judgement.of(Verdict.DEVIATES) == []
    swapped = judged("spellings", replaced("f2010000", "f1010000"))
    assert swapped.of(Verdict.DEVIATES)[0].step.differences[0].field == "event of the record"


def test_bits_of_the_program_in_a_word_are_its_own() -> None:
    # The program sets bit 0 while it unregisters bit 31.
    changed = replaced(CLEAR, f"{WORD}0100000000000000", 2)
    assert judged("bit_31", changed).of(Verdict.DEVIATES) == []


def test_a_registered_bit_that_the_program_changes_is_a_remark() -> None:
    without_end = [SET, CLEAR, "call 39 39 16 0 3 40082a02"]

    def change(lines: list[str]) -> list[str]:
        start = next(number for number, line in enumerate(lines) if without_end[2] in line)
        return [*lines[:start], "exiting 39\n", f"{CLEAR}\n", "end 39 0\n", "done\n"]

    judgement = judged("bit_31", change)
    assert list(judgement.remarks) == ["the program changed a registered bit of an enable word"]


# The registration of bit_31, and one whose word is beyond the end with four-level paging.
REGISTRATION = slice(7, 16)
BEYOND = "address 0x90000000000000: depends on the paging mode"


def beyond(lines: list[str]) -> list[str]:
    """Lines of a registration that the kernel refuses as it should in one paging mode."""
    text = "".join(lines[REGISTRATION]).replace("5440b4405c550000", "0000000000009000")
    return [*text.replace("exit 39 0", "exit 39 -14").splitlines(keepends=True)]


def test_a_call_that_is_not_judged_is_in_the_verdict() -> None:
    judgement = judged("bit_31", lambda lines: [*lines[:7], *beyond(lines), *lines[7:]])
    assert judgement.not_judged == {f"ioctl = -1 EFAULT: {BEYOND}": 1}
    assert verdict(judgement) == ALLOWED.replace(";", "; 1 not judged;", 1)
    assert judgement.decided


def test_to_open_files_is_no_verdict_where_the_rest_is_not_judged() -> None:
    ending = ["end 39 0\n", "done\n"]
    judgement = judged("bit_31", lambda lines: [*lines[:7], *beyond(lines), *ending])
    assert list(lines_of(judgement)) == [
        f"not judged: ioctl = -1 EFAULT: {BEYOND}",
        "uevt: no verdict: 1 not judged beside 1 call to open, map or close files",
    ]
    assert not judgement.decided
    assert judged("bit_31", lambda lines: [*lines[:7], *ending]).decided


@pytest.mark.parametrize(
    ("name", "reasons", "structure"),
    [
        (
            "status_page",
            [
                "user_events_status cannot be mapped: its page belongs to the interface of 5.18 to "
                "6.3",
                "size is 24, less than the 28 bytes of the structure; a structure of 24 bytes "
                "belongs to the interface of 5.18 to 6.0",
            ],
            "{size=24, name_args=0x55d76464e018}",
        ),
        (
            "status_page_6.1",
            [
                "the string at 0x232da01c00000000 cannot be read; a structure of 24 bytes belongs "
                "to the interface of 5.18 to 6.0"
            ],
            "{size=24, name_args=0x5587232da01c}",
        ),
        (
            "bit_31_6.1",
            [
                "bytes after the 20 that this kernel knows of are not zero; a structure of 28 "
                "bytes belongs to the interface of 6.4 and later"
            ],
            "{size=28, enable_bit=31, enable_size=4,",
        ),
    ],
)
def test_a_program_of_another_interface_is_named(
    name: str, reasons: list[str], structure: str
) -> None:
    judgement = judged(name)
    refused = judgement.of(Verdict.REFUSED)
    assert [each.reason for each in refused if "interface" in each.reason] == reasons
    assert structure in " ".join(" ".join(lines_of(judgement)).split())


def test_a_call_from_which_the_kernel_did_not_return_is_not_judged() -> None:
    def change(lines: list[str]) -> list[str]:
        return lines[: lines.index("exit 39 8\n")]

    judgement = judged("bit_31", change)
    assert judgement.not_judged == {"write that did not return": 1}
    assert not judgement.complete


def test_refused_calls_are_explained_by_earlier_ones() -> None:
    text = "\n".join(lines_of(judged("passed")))
    assert (
        "write = -1 ENOENT: write index 2 is not registered on this descriptor, which has 0 to 1"
        in text
    )
    text = "\n".join(lines_of(judged("spellings")))
    for reason in (
        "EADDRINUSE: unspaced exists with other fields",
        "EINVAL: the type 'u33' is unknown",
        "EINVAL: the field 'u32' has no name",
    ):
        assert f"ioctl(DIAG_IOCSREG) = -1 {reason}" in text
    # The registration of the same name, not the one before.
    assert "4. p1: ioctl(fd, DIAG_IOCSREG, {size=28, enable_bit=1" not in text
    assert 'name_args="unspaced u32 a; u32 b"}) = 0' in text


def test_deviations_name_their_contract() -> None:
    text = list(lines_of(judged("bit_31", replaced("exit 39 8", "exit 39 4"))))
    assert (
        "  write: Documentation/trace/user_events.rst, Writing Data; decided by "
        "user_events_write_core()" in text
    )
    assert "      expected  8" in text
    assert "      kernel    4" in text
    assert text[-1].startswith("uevt: 6 calls, the kernel deviates from the ABI in 1;")


def test_records_of_io_uring_are_no_deviation() -> None:
    judgement = judged("uring")
    assert verdict(judgement) == (
        "4 calls, all as the ABI allows; 1 event, 2 records read back byte for byte"
    )
    assert judgement.remarks == {
        "the program uses io_uring: what it submits there is not seen": 1,
        "a record of uring that no recorded call wrote": 1,
    }
    # It may have disabled an event, or closed a descriptor.
    lost = judged("uring", without("page "))
    assert lost.of(Verdict.DEVIATES) == []
    assert list(lost.not_judged) == [
        "write: the model expects another result, but does not know what io_uring did"
    ]


def test_no_call_is_no_verdict() -> None:
    judgement = judged("bit_31", lambda lines: [*lines[:2], "end 39 0\n", "done\n"])
    assert verdict(judgement) == "the program made no user_events call"
    assert judgement.status == 0


def test_no_judged_call_is_no_verdict_either() -> None:
    judgement = judged(
        "bit_31", lambda lines: [*lines[:5], "exit 39 -24\n", "end 39 0\n", "done\n"]
    )
    assert verdict(judgement) == "no user_events call could be judged"
