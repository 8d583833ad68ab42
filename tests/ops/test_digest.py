"""Programs as JSON, as digests, and as C."""

from __future__ import annotations

import json
import mmap
import os

import pytest
from hypothesis import given

from conformance.ops import credentials, digest, mapping, race, tasks, tracing
from conformance.ops import syscalls as op
from conformance.ops.c_source import literal, statement
from conformance.ops.syscalls import Operation, View
from tests.cases.variants import Outcome
from tests.model.generated import READ_WRITE, STEADY, programs

RACE = race.Race(
    "p1",
    (
        race.Track("p1", (op.Close("p1", 4), race.Add("p1", 0x1000, 5, 2)), 3),
        race.Track("p2", (op.Close("p2", 5),)),
    ),
)
EXAMPLES: dict[str, Operation] = {
    "p1: /* new process */;": op.Spawn("p1"),
    "p1: p2 = fork();": op.Fork("p1", "p2"),
    "p1: _exit(3);": op.Exit("p1", 3),
    "p1: setresgid(7, 7, 7); setresuid(7, 7, 7);": op.Setuid("p1", 7),
    'p1: fd4 = open("/f", O_RDONLY | O_TRUNC);': op.Open("p1", 4, "/f", os.O_TRUNC),
    "p1: close(fd4);": op.Close("p1", 4),
    "p1: fd5 = dup(fd4);": op.Dup("p1", 4, 5),
    "p1: ioctl(fd4, 0xc0082a00, 0x1000);": op.Ioctl("p1", 4, 0xC0082A00, 0x1000),
    "p1: read(fd4, buffer, 9);": op.Read("p1", 4, 9),
    "p1: write(fd4, (void *)0x1000, 9);": op.Write("p1", 4, 0x1000, 9),
    "p1: pwrite(fd4, (void *)0x1000, 9, -1);": op.Pwrite("p1", 4, 0x1000, 9, -1),
    "p1: writev(fd4, (struct iovec *)0x1000, 2);": op.Writev("p1", 4, 0x1000, 2),
    "p1: pwritev(fd4, (struct iovec *)0x1000, 2, 1);": op.Pwritev("p1", 4, 0x1000, 2, 1),
    "p1: lseek(fd4, 1, 2);": op.Lseek("p1", 4, 1, 2),
    "p1: mmap((void *)0x1000, 0x2000, PROT_READ | PROT_WRITE, "
    "MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);": op.Mmap(
        "p1", 0x1000, 0x2000, READ_WRITE, mmap.MAP_PRIVATE
    ),
    "p1: mmap((void *)0x1000, 0x1000, PROT_READ, "
    "MAP_FIXED_NOREPLACE | MAP_SHARED, fd4, 0);": op.Mmap(
        "p1", 0x1000, 0x1000, mmap.PROT_READ, mmap.MAP_SHARED, 4
    ),
    "p1: munmap((void *)0x1000, 0x1000);": op.Munmap("p1", 0x1000, 0x1000),
    "p1: mprotect((void *)0x1000, 0x1000, PROT_NONE);": op.Mprotect("p1", 0x1000, 0x1000, 0),
    'p1: memcpy((void *)0x1000, "a\\000\\042", 3);': op.Store("p1", 0x1000, b'a\0"'),
    "p1: memcpy(buffer, (void *)0x1000, 3);": op.Load("p1", 0x1000, 3),
    'p1: cat("/f");': op.ReadFile("p1", "/f"),
    'p1: echo(open("/f", O_WRONLY | O_APPEND), "1\\012");': op.WriteFile(
        "p1", "/f", b"1\n", os.O_WRONLY | os.O_APPEND
    ),
    'p1: stat("/f", &st);': op.Stat("p1", "/f"),
    "p1: fd4 = bpf(5, (union bpf_attr *)0x1000, 48);": op.Bpf("p1", 5, 0x1000, 48, 4),
    "p1: bpf(1, (union bpf_attr *)0x1000, 32);": op.Bpf("p1", 1, 0x1000, 32),
    "p1: *(int *)0x1000 = fd4;": op.StoreDescriptor("p1", 0x1000, 4),
    "p1: socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, {&fd4, &fd5});": op.Socketpair(
        "p1", 4, 5
    ),
    "p1: setsockopt(fd4, 1, 50, (void *)0x1000, 4);": op.Setsockopt("p1", 4, 1, 50, 0x1000, 4),
    "p1: fd4 = perf_event_open((struct perf_event_attr *)0x1000, -1, 0, -1, "
    "PERF_FLAG_FD_CLOEXEC);": op.PerfEventOpen("p1", 4, 0x1000, -1, 0),
    "p1: ioctl(fd4, 0x40042408, fd5);": op.IoctlDescriptor("p1", 4, 0x40042408, 5),
    'p1: *(long *)0x1000 = atol(cat("/id"));': op.StoreNumber("p1", 0x1000, "/id"),
    "p1: memcpy(buffer, (struct perf_event_mmap_page *)0x1000, 8192);": op.ReadRing(
        "p1", 0x1000, 8192, 1024
    ),
    "p1: sched_setaffinity(0, 8, &(long){1 << 1});": op.Pin("p1", 1),
    "d: /* new process */;": tasks.SpawnDriver("d"),
    "p1: p2 = clone(CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);": tasks.Clone(
        "p1", "p2", tasks.VFORK
    ),
    "p1: p3 = clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, "
    "0, 0, 0, 0);": tasks.Clone("p1", "p3", tasks.THREAD),
    'p1: execve("/proc/self/exe", argv, envp);': tasks.Exec("p1"),
    'p1: execve("/f", argv, envp);': tasks.Exec("p1", "/f"),
    "p1: syscall(SYS_exit, 2);": tasks.ExitTask("p1", 2),
    "p1: kill(p1, SIGKILL);": tasks.Die("p1"),
    "p1: fcntl(fd4, F_SETFD, 0);": tasks.KeepOverExec("p1", 4),
    "p1: setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 4096});": tasks.LimitDescriptors("p1", 0),
    "p1: /* int $0x80: */ ioctl(fd4, 0xc0042a00, 0x1000);": tasks.Ioctl32(
        "p1", 4, 0xC0042A00, 0x1000
    ),
    "p1: /* int $0x80: */ read(fd4, buffer, 9);": tasks.Read32("p1", 4, 9),
    "p1: /* int $0x80: */ write(fd4, (void *)0x1000, 9);": tasks.Write32("p1", 4, 0x1000, 9),
    "p1: /* int $0x80: */ writev(fd4, (struct iovec *)0x1000, 2);": tasks.Writev32(
        "p1", 4, 0x1000, 2
    ),
    "p1: /* int $0x80: */ mmap2((void *)0x1000, 0x1000, PROT_READ, "
    "MAP_FIXED_NOREPLACE | MAP_SHARED, fd4, 0);": tasks.Mmap32("p1", 0x1000, 0x1000, 1, 1, 4),
    "p1: sendmsg(fd4, SCM_RIGHTS(fd5), 0);": tasks.SendDescriptor("p1", 4, 5),
    "p1: fd5 = SCM_RIGHTS(recvmsg(fd4, &message, MSG_CMSG_CLOEXEC));": tasks.ReceiveDescriptor(
        "p1", 4, 5
    ),
    "p1: for (int i = 0; i < 3; i++) { close(fd4); for (int n = 0; n < 2; n++) "
    "__atomic_fetch_add((int *)0x1000, 5, __ATOMIC_SEQ_CST); } || "
    "p2: for (int i = 0; i < 1; i++) { close(fd5); };": RACE,
    "p1: for (int n = 0; n < 1; n++) "
    "__atomic_fetch_add((int *)0x1000, 5, __ATOMIC_SEQ_CST);": race.Add("p1", 0x1000, 5),
    "p1: mremap((void *)0x1000, 0x1000, 0x1000, MREMAP_MAYMOVE | MREMAP_FIXED, 0x3000);": (
        mapping.Mremap("p1", 0x1000, 0x1000, 0x3000)
    ),
    "p1: madvise((void *)0x1000, 0x1000, MADV_DONTNEED);": mapping.Discard("p1", 0x1000, 0x1000),
    'p1: fd4 = memfd_create("", MFD_CLOEXEC);': mapping.MemoryFile("p1", 4),
    "p1: ftruncate(fd4, 0x1000);": mapping.Truncate("p1", 4, 0x1000),
    'p1: mkdir("/d", 0755);': tracing.MakeDirectory("p1", "/d"),
    'p1: rmdir("/d");': tracing.RemoveDirectory("p1", "/d"),
    'p1: echo(open("/f", O_WRONLY), getpid());': tracing.WritePid("p1", "/f", os.O_WRONLY),
    "p1: read(fd4, buffer, 512);": tracing.ReadPipe("p1", 4, 512, "t1_"),
    "p1: read(fd4, buffer, getpagesize());": tracing.ReadPage("p1", 4, "/id"),
    "p1: io_uring_prep_write(sqe, fd4, (void *)0x1000, 9, -1);": tracing.SubmitWrite(
        "p1", 4, 0x1000, 9, -1
    ),
    "p1: io_uring_prep_writev(sqe, fd4, (void *)0x1000, 2, 0);": tracing.SubmitWrite(
        "p1", 4, 0x1000, 2, vector=True
    ),
}


@pytest.mark.parametrize(("text", "operation"), EXAMPLES.items(), ids=range(len(EXAMPLES)))
def test_an_operation_is_a_statement_of_c(text: str, operation: Operation) -> None:
    assert statement(operation) == text


def test_no_kind_of_operation_is_forgotten() -> None:
    shown = {type(each).__name__ for each in EXAMPLES.values()}
    # Those about rights have examples of their own (test_rights.py).
    assert shown == kinds(Operation) - kinds(credentials.Right)


def kinds(of: type[Operation]) -> set[str]:
    """The names of what an operation may be; those that others derive from are none."""
    derived = {each.__name__: each for each in of.__subclasses__()}
    below = set().union(*map(kinds, derived.values()))
    bases = {name for name, each in derived.items() if each.__subclasses__()}
    return (below | set(derived)) - bases


@STEADY
@given(programs(hostility=4))
def test_every_operation_is_json_and_c(program: list[Operation]) -> None:
    for operation in program:
        assert json.loads(json.dumps(digest.encode(operation)))["op"] == type(operation).__name__
        assert statement(operation).startswith(f"{operation.actor}: ")


@STEADY
@given(programs(hostility=4), programs(hostility=4))
def test_digests_differ_when_programs_do(first: list[Operation], second: list[Operation]) -> None:
    assert (digest.digest(first) == digest.digest(second)) == (first == second)


def test_the_serial_of_a_name_is_incidental() -> None:
    def program(serial: str, stem: str) -> list[Operation]:
        name = f"t{serial}_{stem}"
        return [
            op.Store("p1", 0x1000, b"\x1c\0\0\0" + name.encode() + b" u32 a\0\xff"),
            op.WriteFile("root", f"/events/user_events/{name}/enable", b"1", os.O_WRONLY),
            op.ReadFile("root", "/status", View.OWN, f"t{serial}_"),
        ]

    assert digest.digest(program("00001", "e")) == digest.digest(program("00731", "e"))
    assert digest.digest(program("00001", "e")) != digest.digest(program("00001", "f"))


def test_numbers_and_order_are_not_incidental() -> None:
    first, second = op.Load("p1", 0x1000, 4), op.Load("p1", 0x1000, 8)
    assert digest.digest([first, second]) != digest.digest([second, first])
    assert digest.digest([first]) != digest.digest([second])
    assert digest.digest([op.Load("p2", 0x1000, 4)]) != digest.digest([first])


def test_bytes_are_a_c_literal_cut_short() -> None:
    assert literal(b'a"\\\n\xff') == '"a\\042\\134\\012\\377"'
    assert literal(bytes(50)) == '"' + "\\000" * 48 + '" /* + 2 bytes */'


def test_every_step_of_every_case_can_be_told(recorded: dict[str, Outcome]) -> None:
    for outcome in recorded.values():
        for step in outcome.lockstep.steps:
            assert step.text.startswith(f"{step.number}. {step.operation.actor}: ")
            json.dumps(digest.encode(step.operation))


def files_of(*names: str) -> list[Operation]:
    """A program that reads one file of each event."""
    return [op.ReadFile("root", f"/events/user_events_multi/{name}/enable") for name in names]


def test_the_digest_does_not_know_what_ran_before() -> None:
    first = digest.digest(files_of("t00001_e.0", "t00001_e.1", "t00001_e.0", "T00001_F"))
    assert first == digest.digest(files_of("t00207_e.1f", "t00207_e.20", "t00207_e.1f", "T00207_F"))
    assert first != digest.digest(files_of("t00001_e.0", "t00001_e.1", "t00001_e.1", "T00001_F"))
    assert first != digest.digest(files_of("t00001_e", "t00001_e.1", "t00001_e.0", "T00001_F"))


def test_the_digest_does_not_know_what_ran_before_a_race() -> None:
    first, later = (
        race.Race("p1", (race.Track("p1", (op.Open("p1", 4, f"/events/{name}/enable", 1),)),))
        for name in ("t00001_e", "t00207_e")
    )
    assert digest.digest([first]) == digest.digest([later])


def test_the_course_of_a_program_begins_like_that_of_one_that_ended_early() -> None:
    program = files_of("t00001_e", "t00001_f", "t00001_g")
    whole, early = digest.identify(program)[1], digest.identify(program[:2])[1]
    assert (len(whole), whole[:4]) == (6, early)
    # What ran before is not in it, and from where two programs part they are different.
    again = files_of("t00099_e", "t00099_x", "t00099_g")
    assert digest.identify(again)[1][:2] == whole[:2]
    assert digest.identify(again)[1][2:] != whole[2:]
    storm = files_of(*["t00001_e"] * (digest.COURSE + 50))
    assert len(digest.identify(storm)[1]) == 2 * digest.COURSE


# Races


def test_what_a_race_told_is_read_again() -> None:
    tallies = [[{"EBADF": 2, "8": 1, "10": 4}, {"0": 3}], [{race.OTHERS: 1}]]
    text = race.told(RACE, tallies)
    assert text == "p1.0: 8 *1, 10 *4, EBADF *2\np1.1: 0 *3\np2.0: others *1\n"
    assert race.tallies(text) == tallies


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("p1.0: 0 *3\np1.1: 0 *3\np2.0: 0 *1\n", True),
        ("p1.0: 0 *1, EBADF *2\np1.1: 0 *3\np2.0: 0 *1\n", True),
        # Another answer, one too few, one track too few, another track.
        ("p1.0: 0 *2, EIO *1\np1.1: 0 *3\np2.0: 0 *1\n", False),
        ("p1.0: 0 *2\np1.1: 0 *3\np2.0: 0 *1\n", False),
        ("p1.0: 0 *3\np1.1: 0 *3\n", False),
        ("p1.0: 0 *3\np1.1: 0 *3\np3.0: 0 *1\n", False),
    ],
)
def test_what_a_race_told_fits_what_is_allowed(text: str, fits: bool) -> None:
    may = race.allowed(RACE, [[["EBADF", "0"], ["0"]], [["0"]]])
    assert may == "p1.0: 0|EBADF *3\np1.1: 0 *3\np2.0: 0 *1\n"
    assert race.fits(may, text) is fits


def test_the_steps_of_a_race_are_in_its_digest() -> None:
    other = race.Race("p1", (RACE.tracks[0], race.Track("p2", (op.Close("p2", 6),))))
    assert digest.digest([RACE]) != digest.digest([other])
    assert json.dumps(digest.encode(RACE)).count('"op"') == 4


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"[[[[2, 8], [1, -9]], [[3, 0]]], [[[1, null]]]]", "p1.0: 8 *2, EBADF *1\n"),
        (b"[[[[3, -4000]], [[3, -5000]]], [[[1, 0]]]]", "p1.0: -4000 *3\n"),
        (b"[[[[3, 0]]], [[[1, 0]]]]", ""),
        (b"[[[[3, 0]], [[3, 0]]]]", ""),
        (b'[[[["x", 0]], [[3, 0]]], [[[1, 0]]]]', ""),
        (b"[[[[3, [0]]], [[3, 0]]], [[[1, 0]]]]", ""),
        (b"[[[7], [[3, 0]]], [[[1, 0]]]]", ""),
        (b"[" * 100_000, ""),
        (b"{", ""),
        (b"\xff", ""),
        (b"", ""),
    ],
)
def test_what_a_guest_tells_of_a_race_may_be_anything(raw: bytes, text: str) -> None:
    shown = race.shown(RACE, raw)
    assert shown.splitlines(keepends=True)[:1] == [text] * bool(text)
