"""Every operation: its text in C, its calls, its JSON, its answer, and its rule in the model."""

from __future__ import annotations

import json
import mmap
import os
import struct

import pytest

from conformance import ops
from conformance.model.syscalls import dispatch
from conformance.ops import compat, credentials, memory, race, tasks
from conformance.ops.allocations import RecordAllocations, Unfreed
from conformance.ops.c_text import literal, request, statement
from conformance.ops.credentials import Capability
from conformance.ops.encoding import decode_operation
from conformance.ops.operation import Operation, Reply
from tests.model.generated import READ_WRITE

RACE = race.Race(
    "p1",
    (
        race.Track("p1", (ops.Close("p1", 4), race.Add("p1", 0x1000, 5, 2)), 3),
        race.Track("p2", (ops.Close("p2", 5),)),
    ),
)

EXAMPLES: dict[str, Operation] = {
    "p1: /* new process */": ops.Spawn("p1"),
    "p1: p2 = fork()": ops.Fork("p1", "p2"),
    "p1: _exit(3)": ops.Exit("p1", 3),
    "p1: setresgid(7, 7, 7); setresuid(7, 7, 7)": ops.Setuid("p1", 7),
    'p1: fd4 = open("/f", O_RDONLY | O_TRUNC)': ops.Open("p1", 4, "/f", os.O_TRUNC),
    "p1: close(fd4)": ops.Close("p1", 4),
    "p1: fd5 = dup(fd4)": ops.Dup("p1", 4, 5),
    "p1: ioctl(fd4, DIAG_IOCSREG, 0x1000)": ops.Ioctl("p1", 4, 0xC0082A00, 0x1000),
    "p1: read(fd4, buffer, 9)": ops.Read("p1", 4, 9),
    "p1: write(fd4, (void *)0x1000, 9)": ops.Write("p1", 4, 0x1000, 9),
    "p1: pwrite(fd4, (void *)0x1000, 9, -1)": ops.Pwrite("p1", 4, 0x1000, 9, -1),
    "p1: writev(fd4, (struct iovec *)0x1000, 2)": ops.Writev("p1", 4, 0x1000, 2),
    "p1: pwritev(fd4, (struct iovec *)0x1000, 2, 1)": ops.Pwritev("p1", 4, 0x1000, 2, 1),
    "p1: lseek(fd4, 1, 2)": ops.Lseek("p1", 4, 1, 2),
    "p1: mmap((void *)0x1000, 0x2000, PROT_READ | PROT_WRITE, "
    "MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)": ops.Mmap(
        "p1", 0x1000, 0x2000, READ_WRITE, mmap.MAP_PRIVATE
    ),
    "p1: mmap((void *)0x1000, 0x1000, PROT_READ, "
    "MAP_FIXED_NOREPLACE | MAP_SHARED, fd4, 0)": ops.Mmap(
        "p1", 0x1000, 0x1000, mmap.PROT_READ, mmap.MAP_SHARED, 4
    ),
    "p1: munmap((void *)0x1000, 0x1000)": ops.Munmap("p1", 0x1000, 0x1000),
    "p1: mprotect((void *)0x1000, 0x1000, PROT_NONE)": ops.Mprotect("p1", 0x1000, 0x1000, 0),
    "p1: memcpy((void *)0x1000, [61 00 22], 3)": ops.Store("p1", 0x1000, b'a\0"'),
    "p1: memcpy(buffer, (void *)0x1000, 3)": ops.Load("p1", 0x1000, 3),
    "p1: cat /f": ops.ReadFile("p1", "/f"),
    "p1: echo 1 >> /f": ops.WriteFile("p1", "/f", b"1\n", os.O_WRONLY | os.O_APPEND),
    'p1: stat("/f", &st)': ops.Stat("p1", "/f"),
    "p1: fd4 = bpf(5, (union bpf_attr *)0x1000, 48)": ops.Bpf("p1", 5, 0x1000, 48, 4),
    "p1: bpf(1, (union bpf_attr *)0x1000, 32)": ops.Bpf("p1", 1, 0x1000, 32),
    "p1: *(int *)0x1000 = fd4": ops.StoreDescriptor("p1", 0x1000, 4),
    "p1: socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, {&fd4, &fd5})": ops.Socketpair(
        "p1", 4, 5
    ),
    "p1: setsockopt(fd4, 1, 50, (void *)0x1000, 4)": ops.Setsockopt("p1", 4, 1, 50, 0x1000, 4),
    "p1: fd4 = perf_event_open((struct perf_event_attr *)0x1000, -1, 0, -1, "
    "PERF_FLAG_FD_CLOEXEC)": ops.PerfEventOpen("p1", 4, 0x1000, -1, 0),
    "p1: ioctl(fd4, PERF_EVENT_IOC_SET_BPF, fd5)": ops.IoctlDescriptor("p1", 4, 0x40042408, 5),
    'p1: *(long *)0x1000 = atol(cat("/id"))': ops.StoreNumber("p1", 0x1000, "/id"),
    "p1: memcpy(buffer, (struct perf_event_mmap_page *)0x1000, 8192)": ops.ReadRing(
        "p1", 0x1000, 8192, 1024
    ),
    "p1: sched_setaffinity(0, 8, &(long){1 << 1})": ops.Pin("p1", 1),
    "p1: sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1})": ops.Fifo("p1"),
    "p1: cat /proc/meminfo /proc/vmstat": ops.KernelMemory("p1"),
    "p1: mkdir /i; "
    "echo 1 > /i/events/kmem/{kmalloc,kmem_cache_alloc,kfree,kmem_cache_free}/enable": (
        RecordAllocations("p1", "/i")
    ),
    "p1: cat /i/trace; rmdir /i": Unfreed("p1", "/i", last=True),
    "d: /* new process */": tasks.SpawnDriver("d"),
    "p1: p2 = clone(CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)": tasks.Clone(
        "p1", "p2", tasks.VFORK
    ),
    "p1: p3 = clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, "
    "0, 0, 0, 0)": tasks.Clone("p1", "p3", tasks.THREAD),
    'p1: execve("/proc/self/exe", argv, envp)': tasks.Exec("p1"),
    'p1: execve("/f", argv, envp)': tasks.Exec("p1", "/f"),
    "p1: syscall(SYS_exit, 2)": tasks.ExitTask("p1", 2),
    "p1: kill(p1, SIGKILL)": tasks.Die("p1"),
    "p1: fcntl(fd4, F_SETFD, 0)": tasks.KeepOverExec("p1", 4),
    "p1: setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 4096})": tasks.LimitDescriptors("p1", 0),
    "p1: /* int $0x80: */ ioctl(fd4, DIAG_IOCSREG with size 4, 0x1000)": compat.Ioctl32(
        "p1", 4, 0xC0042A00, 0x1000
    ),
    "p1: /* int $0x80: */ read(fd4, buffer, 9)": compat.Read32("p1", 4, 9),
    "p1: /* int $0x80: */ write(fd4, (void *)0x1000, 9)": compat.Write32("p1", 4, 0x1000, 9),
    "p1: /* int $0x80: */ writev(fd4, (struct iovec *)0x1000, 2)": compat.Writev32(
        "p1", 4, 0x1000, 2
    ),
    "p1: /* int $0x80: */ mmap2((void *)0x1000, 0x1000, PROT_READ, "
    "MAP_FIXED_NOREPLACE | MAP_SHARED, fd4, 0)": compat.Mmap32("p1", 0x1000, 0x1000, 1, 1, 4),
    "p1: sendmsg(fd4, SCM_RIGHTS(fd5), 0)": ops.SendDescriptor("p1", 4, 5),
    "p1: fd5 = SCM_RIGHTS(recvmsg(fd4, &message, MSG_CMSG_CLOEXEC))": ops.ReceiveDescriptor(
        "p1", 4, 5
    ),
    "p1: for (int i = 0; i < 3; i++) { close(fd4); for (int n = 0; n < 2; n++) "
    "__atomic_fetch_add((int *)0x1000, 5, __ATOMIC_SEQ_CST); } || "
    "p2: for (int i = 0; i < 1; i++) { close(fd5); }": RACE,
    "p1: for (int n = 0; n < 1; n++) "
    "__atomic_fetch_add((int *)0x1000, 5, __ATOMIC_SEQ_CST)": race.Add("p1", 0x1000, 5),
    "p1: mremap((void *)0x1000, 0x1000, 0x1000, MREMAP_MAYMOVE | MREMAP_FIXED, 0x3000)": (
        ops.Mremap("p1", 0x1000, 0x1000, 0x3000)
    ),
    "p1: mmap((void *)0x1000, 0x1000, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_SHARED, "
    f'open("{memory.DEVICE_MEMORY}", O_RDWR), 0)': memory.MapDevice("p1", 0x1000, 4),
    "p1: cat /proc/self/stat /* minflt */": memory.MinorFaults("p1"),
    "p1: madvise((void *)0x1000, 0x1000, MADV_DONTNEED)": ops.Discard("p1", 0x1000, 0x1000),
    'p1: fd4 = memfd_create("", MFD_CLOEXEC)': ops.MemoryFile("p1", 4),
    "p1: ftruncate(fd4, 0x1000)": ops.Truncate("p1", 4, 0x1000),
    'p1: mkdir("/d", 0755)': ops.MakeDirectory("p1", "/d"),
    'p1: rmdir("/d")': ops.RemoveDirectory("p1", "/d"),
    "p1: echo -n $$ > /f": ops.WritePid("p1", "/f", os.O_WRONLY),
    "p1: read(fd4, buffer, 512)": ops.ReadPipe("p1", 4, 512),
    "p1: read(fd4, buffer, getpagesize())": ops.ReadPage("p1", 4, "/id"),
    "p1: io_uring_prep_write(sqe, fd4, (void *)0x1000, 9, -1)": ops.SubmitWrite(
        "p1", 4, 0x1000, 9, -1
    ),
    "p1: io_uring_prep_writev(sqe, fd4, (void *)0x1000, 2, 0)": ops.SubmitWrite(
        "p1", 4, 0x1000, 2, vector=True
    ),
    "p1: io_uring_prep_write_fixed(sqe, fd4, (void *)0x1000, 9, 0, 0)": ops.SubmitWrite(
        "p1", 4, 0x1000, 9, registered=True
    ),
    "p1: setgroups(2, (gid_t[]){5, 6}); setresgid(8, 8, 8); setresuid(7, 7, 7)": credentials.Become(
        "p1", 7, 8, (5, 6)
    ),
    "p1: prctl(PR_SET_KEEPCAPS, 1); setgroups(0, (gid_t[]){}); setresgid(7, 7, 7); "
    "setresuid(7, 7, 7)": credentials.Become("p1", 7, 7, keep=True),
    "p1: capset(v3, permitted all, effective CAP_SYS_ADMIN | CAP_PERFMON)": credentials.Capset(
        "p1", credentials.EVERYTHING, credentials.mask(Capability.SYS_ADMIN, Capability.PERFMON)
    ),
    "p1: capset(v3, permitted none, effective none)": credentials.Capset("p1", 0, 0),
    "p1: prctl(PR_SET_NO_NEW_PRIVS, 1)": credentials.NoNewPrivileges("p1"),
    "p1: seccomp(SECCOMP_SET_MODE_FILTER, 0, /* ioctl, writev: EPERM */)": credentials.Seccomp(
        "p1", ("ioctl", "writev"), "EPERM"
    ),
    "p1: unshare(CLONE_NEWNS | CLONE_NEWUSER)": credentials.Unshare(
        "p1", credentials.CLONE_NEWUSER | credentials.CLONE_NEWNS
    ),
    'p1: chroot("/t")': credentials.Chroot("p1", "/t"),
    'p1: mount("tmpfs", "/run", "tmpfs", 0, 0)': credentials.Mount("p1", "tmpfs", "/run", "tmpfs"),
    'p1: mount("none", "/t", "", MS_RDONLY | MS_REMOUNT | MS_BIND, 0)': credentials.Mount(
        "p1", "none", "/t", "", credentials.MS_BIND | credentials.MS_REMOUNT | credentials.MS_RDONLY
    ),
    'p1: mount("none", "/t", "", MS_REMOUNT, "gid=7")': credentials.Mount(
        "p1", "none", "/t", "", credentials.MS_REMOUNT, "gid=7"
    ),
    'p1: umount2("/t", MNT_DETACH)': credentials.Umount("p1", "/t"),
    'p1: mknod("/run/f", S_IFREG | 0600, 0)': ops.Mknod("p1", "/run/f"),
    'p1: mkdir("/run/d", 0755)': ops.Mkdir("p1", "/run/d"),
    'p1: chmod("/f", 0604)': ops.Chmod("p1", "/f", 0o604),
    'p1: chown("/f", -1, 7)': ops.Chown("p1", "/f", gid=7),
    'p1: stat("/f", &st), st.st_uid, st.st_gid': ops.Ownership("p1", "/f"),
    'p1: system("echo \\"$PPID\\"\\ntrue")': ops.RunProgram(
        "p1", 'echo "$PPID"\ntrue', "7\n", event="e", attach="perf"
    ),
    "p1: getdents64(fd4, buffer, sizeof(buffer))": ops.Getdents("p1", 4),
}


@pytest.mark.parametrize(("text", "operation"), EXAMPLES.items(), ids=range(len(EXAMPLES)))
def test_operation_has_c_text_json_and_calls(text: str, operation: Operation) -> None:
    assert statement(operation) == text
    assert decode_operation(json.loads(json.dumps(operation.encode()))) == operation
    assert json.loads(json.dumps(operation.calls()))


def test_every_operation_has_an_example() -> None:
    assert {type(each).__name__ for each in EXAMPLES.values()} == names(Operation)


def test_every_operation_has_a_rule_in_the_model() -> None:
    rules = {kind.__name__ for kind in dispatch.HANDLERS}
    assert rules | {"Race"} == names(Operation)


def names(base: type[Operation]) -> set[str]:
    """The names of all operations, without classes that others derive from and that do nothing."""
    derived = base.__subclasses__()
    idle = [each for each in derived if each.calls is Operation.calls]
    bases = {each.__name__ for each in idle if each.__subclasses__()}
    below: set[str] = set().union(*map(names, derived))
    return (below | {each.__name__ for each in derived}) - bases


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"e1 u32 a\0", '"e1 u32 a\\0"'),
        (b'a"\\\n', '"a\\"\\\\\\n"'),
        (b"\1\0\xff", "[01 00 ff]"),
        (b"\xa5" * 50, "[a5 * 50]"),
        (b"x" * 66, f'"{"x" * 64}" /* + 2 bytes */'),
        (bytes(range(40)), f"[{bytes(range(32)).hex(' ')} ... 40 bytes]"),
        (b"", "[]"),
    ],
)
def test_bytes_are_text_or_hexadecimal(data: bytes, text: str) -> None:
    assert literal(data) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0x40082A02, "DIAG_IOCSUNREG"),
        (0xC0002A00, "DIAG_IOCSREG with size 0"),
        (0x40082A00, "DIAG_IOCSREG with _IOC_WRITE"),
        (0x541B, "_IOC(_IOC_NONE, 'T', 27, 0)"),
    ],
)
def test_requests_have_names(number: int, text: str) -> None:
    assert request(number) == text


def test_capabilities_have_kernel_numbers() -> None:
    assert [each.value for each in Capability] == list(range(41))
    assert credentials.mask(Capability.PERFMON, Capability.PERFMON) == 1 << 38


def run(code: bytes, architecture: int, number: int) -> int:
    """Interpret the classic BPF instructions that seccomp filters use; return the action."""
    words = {0: number, 4: architecture}
    program = list(struct.iter_unpack("<HBBI", code))
    accumulator = position = 0
    while True:
        operation, jump, other, constant = program[position]
        position += 1
        match operation:
            case 0x20:
                accumulator = words[constant]
            case 0x15:
                position += jump if accumulator == constant else other
            case 0x06:
                return int(constant)


@pytest.mark.parametrize(
    ("architecture", "number", "answer"),
    [
        pytest.param(0xC000003E, 16, 0x00050001, id="first"),
        pytest.param(0xC000003E, 20, 0x00050001, id="last"),
        pytest.param(0xC000003E, 1, 0x7FFF0000, id="another-call"),
        pytest.param(0x40000003, 16, 0x7FFF0000, id="another-architecture"),
    ],
)
def test_seccomp_refuses_the_named_calls(architecture: int, number: int, answer: int) -> None:
    _, stored, _ = credentials.Seccomp("p1", ("ioctl", "writev"), "EPERM").calls()
    raw = bytes.fromhex(str(stored[2]))
    length, where = struct.unpack_from("<HxxxxxxQ", raw)
    assert (length, where) == ((len(raw) - 16) // 8, int(str(stored[1])) + 16)
    assert run(raw[16:], architecture, number) == answer


def test_directory_entries_are_parsed() -> None:
    names = (b"b", b"abcdefgh", b".")
    raw = b""
    for name in names:
        length = (19 + len(name) + 1 + 7) // 8 * 8
        raw += (struct.pack("<QqHB", 1, 2, length, 4) + name).ljust(length, b"\0")
    assert ops.Getdents("p1", 4).decode([Reply(96, 0, raw)])[1] == b".\nabcdefgh\nb\n"
    assert ops.Getdents("p1", 4, "a").decode([Reply(96, 0, raw)])[1] == b"abcdefgh\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"op": "Unknown", "actor": "p1"}, "no operation is called 'Unknown'"),
        ({"op": "Close", "actor": "p1"}, "not a Close: KeyError"),
        ({"op": "Close", "actor": "p1", "slot": "4"}, "not a Close: .*'4' is no int"),
        ({"op": "Store", "actor": "p1", "address": 1, "data": "00"}, "not a Store"),
    ],
)
def test_malformed_operations_are_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_operation(data)
