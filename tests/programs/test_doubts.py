"""Programs of which the recording does not show everything: no verdict without reason."""

from __future__ import annotations

import mmap
import os
import socket
import struct

import pytest

from conformance.programs.judgement import Judgement, Verdict
from conformance.programs.text import lines_of
from tests.programs.made import DATA, STATUS, TRACEFS, Made, memory
from tests.programs.recordings import PROFILE_6_1

PERSIST = 1
OTHER_USER = "1000 1000 0 0"
LIMITS = "refused for a reason outside of user_events, such as a limit"
READV, LSEEK, SENDMSG, RECVMSG, UNSHARE, IO_SETUP = 19, 8, 46, 47, 272, 206
DUP2, PWRITE, WRITEV, OPENAT2, CLOSE_RANGE, PIDFD_GETFD = 33, 18, 20, 437, 436, 438
PERF_EVENT_OPEN, MMAP, PRCTL, SECCOMP = 298, 9, 157, 317
EBADF, EACCES, EMFILE, ENOENT, EPERM, EADDRINUSE = -9, -13, -24, -2, -1, -98


def verdicts(judgement: Judgement) -> list[Verdict]:
    """The verdicts of the calls, of allowed writes none."""
    return [call.verdict for call in judgement.calls]


def assert_allowed(judgement: Judgement, calls: int) -> None:
    """All calls are judged, and allowed."""
    assert set(verdicts(judgement)) == {Verdict.ALLOWED}
    assert not judgement.not_judged
    assert judgement.judged == calls


def assert_not_judged(judgement: Judgement, reason: str) -> None:
    """One call is not judged, all others are allowed."""
    assert set(verdicts(judgement)) <= {Verdict.ALLOWED}
    (found,) = judgement.not_judged
    assert reason in found


# Descriptors


def registered() -> Made:
    """A program whose event ends with its descriptor 3."""
    return Made().open().register("e u32 a").unregister()


def registered_again(made: Made) -> Judgement:
    """The same name with other fields: only if nothing refers to the former event."""
    return made.open(result=4).register("e u64 b", fd=4).judged()


@pytest.mark.parametrize("source", ["/dev/null", "pipe:[77]"])
def test_dup2_of_another_file_closes_what_it_replaces(source: str) -> None:
    made = registered().call(DUP2, 7, 3, result=3, file=(7, source))
    assert_allowed(registered_again(made), 6)


def test_a_shell_redirects_and_restores_its_output() -> None:
    made = registered().call(DUP2, 3, 1, result=1, file=(3, DATA))
    made.call(DUP2, 10, 1, result=1, file=(10, "/dev/pts/0")).close()
    assert_allowed(registered_again(made), 8)


def test_a_descriptor_has_one_name_in_the_report() -> None:
    made = Made().open().call(DUP2, 3, 1, result=1, file=(3, DATA)).write(fd=1, result=ENOENT)
    text = "\n".join(lines_of(made.judged()))
    assert "2. p1: fd2 = dup(fd)" in text
    assert "> 3. p1: write(fd2, " in text


def test_close_on_exec_holds_for_every_execve() -> None:
    made = Made().open().line("exec 39 39", f"file 3 {DATA.encode().hex()}")
    made.register("e u32 a").unregister().line("exec 39 39")
    assert_allowed(registered_again(made), 5)


def test_a_table_of_descriptors_of_its_own_keeps_files_open() -> None:
    made = registered().line("fork 39 40 39 10f00").call(UNSHARE, 0x400, tid=40).close()
    # The thread still has the file: the fields cannot change.
    made.open(result=4).register("e u64 b", fd=4, result=EADDRINUSE)
    assert verdicts(made.judged())[-1] is Verdict.REFUSED
    made = registered().line("fork 39 40 39 10f00")
    made.call(CLOSE_RANGE, 3, 3, 2, tid=40).close()
    assert_allowed(registered_again(made), 7)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (Made().open().close().line("fork 39 40 40 11").close(result=EBADF, tid=40), []),
        (Made().open().close().line("exec 39 39").close(result=EBADF), []),
        (Made().open().close().close(result=EBADF), [Verdict.REFUSED]),
    ],
)
def test_a_new_process_may_close_what_its_parent_closed(made: Made, verdict: list[Verdict]) -> None:
    assert verdicts(made.judged())[2:] == verdict


# Effects that are not followed

ENABLE = f"{TRACEFS}/instances/foo/events/user_events/e/enable"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{TRACEFS}/set_event", "user_events:e"),
        (f"{TRACEFS}/events/user_events/e/trigger", "hist:keys=a"),
        (ENABLE, "1"),
    ],
)
def test_an_event_enabled_by_a_file_that_is_not_modelled(path: str, text: str) -> None:
    made = Made().open().register("e u32 a").write_text(path, text).write()
    assert_not_judged(made.judged(), "does not know what a write of ")


def test_an_event_enabled_by_a_file_that_is_modelled() -> None:
    made = Made().open().register("e u32 a")
    made.write_text(f"{TRACEFS}/events/user_events/e/enable", "1")
    assert_allowed(made.write().judged(), 3)


def test_writing_to_the_trace_enables_no_event() -> None:
    made = Made().open().register("e u32 a").write_text(f"{TRACEFS}/trace_marker", "1")
    assert verdicts(made.write().judged())[-1] is Verdict.DEVIATES


@pytest.mark.parametrize(
    ("number", "remark"),
    [
        (PERF_EVENT_OPEN, "the program uses perf events of its own, which enable user events"),
        (IO_SETUP, "the program uses asynchronous I/O: what it submits there is not seen"),
    ],
)
def test_an_event_enabled_by_a_call_that_is_not_followed(number: int, remark: str) -> None:
    judgement = Made().open().register("e u32 a").call(number, result=7).write().judged()
    assert_not_judged(judgement, "the model expects another result, but does not know")
    assert judgement.remarks == {remark: 1}
    # A failed call has no effect.
    judgement = Made().open().register("e u32 a").call(number, result=-38).write().judged()
    assert verdicts(judgement)[-1] is Verdict.DEVIATES


def test_a_result_that_does_not_depend_on_events_is_judged() -> None:
    made = Made("ftrace").open().register("e u32 a").call(PERF_EVENT_OPEN, result=7)
    deviating = made.write(result=4).judged().of(Verdict.DEVIATES)
    assert [each.field for each in deviating[0].step.differences] == ["value"]


def test_a_registration_that_the_model_refuses_ends_the_knowledge_of_its_descriptor() -> None:
    made = Made().open().open(result=4).register("e u32 a").unregister()
    made.call(PERF_EVENT_OPEN, result=7).register("e u64 b", fd=4).write(fd=4)
    judgement = made.judged()
    assert set(verdicts(judgement)) == {Verdict.ALLOWED}
    assert list(judgement.not_judged) == [
        "ioctl: the model expects another result, but does not know which events "
        "perf_event_open enabled",
        "write on a descriptor of unknown origin",
    ]


def sent(made: Made, *flags: int) -> Made:
    """The descriptor is sent to the program itself, which may receive it."""
    made.call(SENDMSG, 7, 0x100, result=1, after=[f"file 3 {DATA.encode().hex()}"]).close()
    for fd, flag in enumerate(flags, 8):
        shown = f"file {fd} {DATA.encode().hex()}"
        made.call(RECVMSG, 7, 0x100, flag, result=1, after=[shown]).close(fd)
    return made


def test_a_sent_descriptor_may_be_closed_by_its_socket() -> None:
    doubt = "what became of a descriptor that was sent"
    assert_not_judged(registered_again(sent(registered())), doubt)
    assert_not_judged(registered_again(sent(registered(), socket.MSG_PEEK)), doubt)


def test_a_message_that_could_not_be_sent_holds_nothing() -> None:
    shown = [f"file 3 {DATA.encode().hex()}"]
    made = registered().call(SENDMSG, 7, 0x100, result=0, after=shown)
    made.call(SENDMSG, 7, 0x100, result=-11, after=shown).close()
    assert_allowed(registered_again(made), 6)


def test_a_message_that_is_peeked_at_stays_there() -> None:
    assert_allowed(registered_again(sent(registered(), socket.MSG_PEEK, 0)), 8)


def test_a_descriptor_of_another_process_is_not_followed() -> None:
    shown = [f"file 9 {DATA.encode().hex()}"]
    made = Made().open().call(PIDFD_GETFD, 8, 3, result=9, after=shown).register("e u32 a", fd=9)
    judgement = made.register("e u64 b", result=EADDRINUSE).judged()
    assert verdicts(judgement) == [Verdict.ALLOWED]
    assert list(judgement.not_judged) == [
        "pidfd_getfd of a descriptor of unknown origin",
        "ioctl on a descriptor of unknown origin",
        "ioctl = -1 EADDRINUSE: the model expects another result, but does not know "
        "pidfd_getfd of a descriptor of unknown origin",
    ]


# What surrounds a program


@pytest.mark.parametrize("number", [4, 11, 12, 13, 18, 23, 24, 40, 1])
def test_an_open_refused_for_reasons_that_are_not_recorded(number: int) -> None:
    assert_not_judged(Made().open().open(result=-number).judged(), LIMITS)


@pytest.mark.parametrize("path", [DATA, STATUS, "/mnt/user_events_status", "user_events_data"])
def test_a_path_that_leads_nowhere(path: str) -> None:
    judgement = Made().open().open(path, ENOENT).judged()
    assert_not_judged(judgement, f"open of {path}: which file this is, if any, was not recorded")


@pytest.mark.parametrize("path", ["/home/me/tracing-demo/lib.so", "tracing/x"])
def test_an_open_of_no_file_of_tracefs_is_not_counted(path: str) -> None:
    assert_allowed(Made().open().open(path, ENOENT).judged(), 1)


@pytest.mark.parametrize(("resolve", "result"), [(8, -18), (0, -22), (1, ENOENT)])
def test_openat2_has_errors_of_its_own(resolve: int, result: int) -> None:
    how = struct.pack("<3Q", os.O_RDWR, 0, resolve)
    before = ["credentials 0 0 1ffffffffff 0", memory(0x5000, DATA.encode() + b"\0")]
    before.append(memory(0xD000, how))
    made = Made().open().call(OPENAT2, -100, 0x5000, 0xD000, 24, result=result, before=before)
    judgement = made.judged()
    assert verdicts(judgement) == [Verdict.ALLOWED]
    assert judgement.not_judged.total() == 1


@pytest.mark.parametrize("result", [EMFILE, EPERM, -12, -38])
def test_a_registration_refused_for_reasons_that_are_not_recorded(result: int) -> None:
    assert_not_judged(Made().open().register("e u32 a", result=result).judged(), LIMITS)


@pytest.mark.parametrize("number", [PRCTL, SECCOMP])
def test_a_filter_refuses_with_any_error(number: int) -> None:
    made = Made().open().call(number, result=0).register("e u32 a", result=-22)
    assert_not_judged(made.judged(), LIMITS)


def test_a_filter_that_was_not_installed_refuses_nothing() -> None:
    made = Made().open().call(SECCOMP, result=-22).register("e u32 a", result=-22)
    assert made.judged().of(Verdict.DEVIATES)


def test_a_file_that_the_modes_of_the_model_do_not_open_is_followed() -> None:
    made = Made("ftrace").open(credentials=OTHER_USER)
    made.register("e u32 a", credentials=OTHER_USER).write()
    judgement = made.judged()
    assert_not_judged(judgement, "openat of user_events_data: modes of tracefs were not recorded")
    assert (judgement.judged, judgement.records) == (2, 1)


def test_a_user_without_the_modes_for_it_makes_a_mistake() -> None:
    judgement = Made().open(result=EACCES, credentials=OTHER_USER).judged()
    assert verdicts(judgement) == [Verdict.REFUSED]


@pytest.mark.parametrize("user", ["1000 1000", "0 0"])
def test_capabilities_of_a_user_namespace_do_not_count(user: str) -> None:
    inside = f"{user} 1ffffffffff 1"
    made = Made().open().register("e u32 a", result=EPERM, flags=PERSIST, credentials=inside)
    assert verdicts(made.judged())[-1] is Verdict.REFUSED
    if user != "0 0":
        refused = Made().open(result=EACCES, credentials=inside).judged()
        assert verdicts(refused) == [Verdict.REFUSED]


# Memory and positions


def test_a_mapping_may_be_removed_and_made_again() -> None:
    made = Made().open(STATUS, flags=os.O_RDONLY)
    for _ in range(2):
        mapped = (0, 4096, mmap.PROT_READ, mmap.MAP_SHARED, 3, 0)
        made.call(MMAP, *mapped, result=0x7F0000000000, file=(3, STATUS))
    assert_allowed(made.judged(PROFILE_6_1), 3)


def test_memory_takes_the_place_of_the_status_page() -> None:
    made = Made().open(STATUS, 4, os.O_RDONLY).open()
    made.call(MMAP, 0, 4096, 1, 1, 4, 0, result=0x7000, file=(4, STATUS))
    given, filled = (struct.pack("<IQII", 20, 0x6000, bit, 0) for bit in (0, 1))
    before = [
        "credentials 0 0 1ffffffffff 0",
        memory(0x7000, given + bytes(8)),
        "rights 7000 rw-p",
        memory(0x6000, b"e u32 a\0"),
    ]
    after = [memory(0x7000, filled + bytes(8))]
    made.call(16, 3, 0xC0082A00, 0x7000, file=(3, DATA), before=before, after=after)
    assert_allowed(made.judged(PROFILE_6_1), 4)


@pytest.mark.parametrize("number", [READV, 295, 327, 17])
def test_the_position_is_not_known_after_a_read_that_is_not_judged(number: int) -> None:
    made = Made().open().open(STATUS, 4, os.O_RDONLY)
    made.call(number, 4, 0x8000, 1, result=29, file=(4, STATUS))
    made.call(LSEEK, 4, -20, 1, result=9, file=(4, STATUS))
    judgement = made.judged()
    assert verdicts(judgement) == [Verdict.ALLOWED, Verdict.ALLOWED]
    assert "lseek on a descriptor of unknown origin" in judgement.not_judged


@pytest.mark.parametrize("number", [LSEEK, PWRITE, 296, 328])
def test_32_bit_calls_with_long_offsets_are_not_judged(number: int) -> None:
    before = [memory(0x8000, bytes(8))]
    made = (
        Made().open().call(number, 3, 0x8000, 8, compat=1, result=8, file=(3, DATA), before=before)
    )
    assert_not_judged(made.judged(), "of a 32-bit program")


def test_a_payload_that_is_recorded_in_part_is_not_judged() -> None:
    part = memory(0x100000, bytes(1 << 18))
    made = Made("ftrace").open().register("e u32 a")
    made.call(PWRITE, 3, 0x100000, 300000, result=300000, file=(3, DATA), before=[part])
    vector = memory(0x8000, struct.pack("<QQ", 0x100000, 300000))
    made.call(WRITEV, 3, 0x8000, 1, result=300000, file=(3, DATA), before=[vector, part])
    judgement = made.judged()
    assert judgement.not_judged == {"write of 300000 bytes, more than are recorded": 2}
    assert not judgement.of(Verdict.DEVIATES)


def test_memory_that_only_the_kernel_reads_is_not_judged() -> None:
    """PROT_WRITE alone: no other process can read it."""
    made = Made("ftrace").open().register("e u32 a")
    unread = memory(0xA000, b"", 8)
    refused = made.call(1, 3, 0xA000, 8, result=8, file=(3, DATA), before=[unread])
    assert_not_judged(refused.judged(), "does not know the memory, which could not be read")


@pytest.mark.parametrize("compat", [0, 1])
def test_a_payload_that_another_task_changes_is_not_judged(compat: int) -> None:
    """The kernel copies it after it was recorded."""
    made = Made("ftrace").open().register("e u32 a")
    made.write(b"abcd", recorded=b"abcc", left=b"abce", compat=compat)
    assert_not_judged(made.judged(), "does not know the memory, which was changed during the call")


def test_writes_of_a_32_bit_program_are_counted() -> None:
    judgement = Made("ftrace").open().register("e u32 a").write(compat=1).judged()
    assert "  e u32 a: index 0, 1 registration, 1 write, 1 record" in lines_of(judgement)


def test_a_payload_that_stays_is_judged() -> None:
    made = Made("ftrace").open().register("e u32 a").write(b"abcd", recorded=b"abcc", left=b"abcc")
    assert made.judged().of(Verdict.DEVIATES)


# Names


@pytest.mark.parametrize("listener", ["ftrace", "perf"])
def test_names_of_other_letters(listener: str) -> None:
    judgement = Made(listener).open().register("évé u32 a").write().judged()
    assert_allowed(judgement, 3)
    assert "  évé u32 a: index 0, 1 registration, 1 write, 1 record" in lines_of(judgement)
