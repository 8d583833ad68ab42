"""Programs as lines of text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from conformance import ops
from conformance.abi import uapi
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Step
from conformance.client.memory import memory_file
from conformance.client.user_events import UserEvents
from conformance.listing.listing import Listing
from conformance.listing.names import plain_names
from conformance.model.answers import Difference
from conformance.model.machine import Model
from conformance.results.case_result import Mismatch
from tests.cases.variants import PROFILE, Attempt


def steps_of(program: Callable[[UserEvents], object]) -> list[Step]:
    attempt = Attempt(ModelExecutor(Model(PROFILE)))
    program(UserEvents(attempt.lockstep, serial=1))
    return attempt.lockstep.steps


def registers(ue: UserEvents) -> None:
    event = ue.event("u32 a", bit=7, enabled=True)
    event.write(b"\1\0\0\0")
    event.data.writev([b"\0\0\0\0", b"abc", b""])
    assert event.word.value == 0x80
    event.unregister()
    event.delete()


def forks(ue: UserEvents) -> None:
    data, page = ue.open_data(), ue.process.map()
    word = ue.process.word_at(page + 8, value=None)
    data.register(f"{ue.name()} u8 a", word=word, flags=uapi.USER_EVENT_REG_PERSIST)
    child = ue.fork(ue.process)
    child.store(page, b"\0")
    data.of(child).ioctl(0xC0002A00, 0)
    assert ue.tracefs.status()


def maps_a_file(ue: UserEvents) -> None:
    ue.open_data()
    file = memory_file(ue.process)
    ue.open_data()
    page = file.map()
    ue.process.load(page, 4)


def fails(ue: UserEvents) -> None:
    data = ue.open_data()
    data.writev_at([(0x2000_3000_0000, 8)])
    ue.tracefs.directory(ue.name()).set_filter("a b")
    ue.tracefs.command("-:" + ue.name())


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (
            registers,
            [
                '4. p1: fd = open("user_events_data", O_RDWR)',
                "8. p1: ioctl(fd, DIAG_IOCSREG, {size=28, enable_bit=7, enable_size=4, "
                'enable_addr=&word, name_args="e1 u32 a"}) = 0  /* write_index 0 */',
                "11. root: echo 1 > events/user_events/e1/enable",
                "13. p1: write(fd, {write_index=0, [01 00 00 00]}, 8) = 8",
                '17. p1: writev(fd, [{write_index=0}, "abc", []], 3) = -1 EINVAL',
                "18. p1: word == 0x80",
                "20. p1: ioctl(fd, DIAG_IOCSUNREG, "
                "{size=16, disable_bit=7, disable_addr=&word}) = 0",
                '22. p1: ioctl(fd, DIAG_IOCSDEL, "e1") = -1 EBUSY',
            ],
        ),
        (
            forks,
            [
                '4. p1: fd = open("user_events_data", O_RDWR)',
                "5. p1: page = mmap(NULL, 0x1000, PROT_READ | PROT_WRITE, "
                "MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)",
                "8. p1: ioctl(fd, DIAG_IOCSREG, {size=28, enable_bit=0, enable_size=4, "
                "flags=USER_EVENT_REG_PERSIST, enable_addr=page + 0x8, "
                'name_args="e1 u8 a"}) = 0  /* write_index 0 */',
                "10. p1: p2 = fork()",
                "11. p2: memcpy(page, [00], 1)",
                "12. p2: ioctl(fd, DIAG_IOCSREG with size 0, NULL) = -1 ENOTTY",
                '14. root: cat user_events_status = "e1\\n"',
            ],
        ),
        (
            maps_a_file,
            [
                '4. p1: fd = open("user_events_data", O_RDWR)',
                '5. p1: memfd = memfd_create("", MFD_CLOEXEC)',
                "6. p1: ftruncate(memfd, 0x1000) = 0",
                '7. p1: fd2 = open("user_events_data", O_RDWR)',
                "8. p1: memfd_page = mmap(NULL, 0x1000, PROT_READ | PROT_WRITE, MAP_SHARED, "
                "memfd, 0)",
                "9. p1: *(u32 *)memfd_page == 0x0",
            ],
        ),
        (
            fails,
            [
                '4. p1: fd = open("user_events_data", O_RDWR)',
                "6. p1: writev(fd, [{0x200030000000, 8}], 1) = -1 EFAULT",
                "8. root: echo 'a b' > events/user_events/e1/filter = -1 ENOENT",
                "9. root: echo -n -:e1 >> dynamic_events = -1 ENOENT",
            ],
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_arguments_are_shown_in_the_call_that_reads_them(
    program: Callable[[UserEvents], object], lines: list[str]
) -> None:
    assert Listing(steps_of(program)).lines == lines


def test_calls_without_an_answer_are_shown() -> None:
    lost = [ops.Store("p1", 0x2000_0000_0000, b"abc"), ops.Write("p1", 4, 0x2000_0000_0000, 3)]
    assert Listing(steps_of(lambda ue: ue.open_data().close()), lost).lines == [
        '4. p1: fd = open("user_events_data", O_RDWR)',
        "5. p1: close(fd) = 0",
        '6. p1: memcpy(&reg, "abc", 3) = ?',
        "7. p1: write(fd, &reg, 3) = ?",
    ]


GUARD = "a5 " * 8


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Difference(
                "memory p1 0x200010000038", f"{GUARD}f7 00{' a5' * 8}", f"{GUARD}ff 00{' a5' * 8}"
            ),
            ("memory p1 word", "f7 00", "ff 00"),
        ),
        (
            Difference("memory p1 0x200010000078", f"{GUARD}f7{' a5' * 8}", "not readable"),
            ("memory p1 word and 8 bytes on both sides", f"{GUARD}f7{' a5' * 8}", "not readable"),
        ),
        (Difference("data", "t00001_e\n", ""), ("data", "e1\n", "")),
        (Difference("errno", "EBUSY", "success"), ("errno", "EBUSY", "success")),
    ],
)
def test_differences_have_the_names_of_the_program(
    found: Difference, expected: tuple[str, str, str]
) -> None:
    (step, *_) = steps_of(lambda ue: ue.open_data().close())
    assert Listing([step]).mismatch(step, found) == Mismatch(step.number, *expected)


def test_a_wrong_write_index_is_a_difference_of_that_member() -> None:
    steps = steps_of(lambda ue: ue.event())
    load = next(each for each in reversed(steps) if isinstance(each.operation, ops.Load))
    wrong = bytes(24) + b"\2\0\0\0"
    seen = replace(load, seen=ops.Observation(0, data=wrong))
    listing = Listing([seen if each is load else each for each in steps])
    assert listing.mismatch(seen, Difference("data", "", "")) == Mismatch(
        load.number, "write_index", "0", "2"
    )
    assert listing.lines[-1].endswith(" = 0  /* write_index 2 */")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("t00012_e: a=1", "e1: a=1"),
        ("T00012_E t00012_e2 t00012_other", "e1 e2 other"),
        ("u:t00012_e.1f not00012_e", "u:e1.1f not00012_e"),
        (r'"t00012_b\nt00012_e\n"', r'"b\ne1\n"'),
    ],
)
def test_generated_names_are_short(text: str, plain: str) -> None:
    assert plain_names(text) == plain
