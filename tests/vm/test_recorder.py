"""The recorder with programs of the host: which calls it writes down, and what it reads."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vm.recorder.program import compile_recorder
from vm.recorder.recording import Call, Entry, Group, groups

_INCLUDES = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
"""
# The 32-bit entry; 125 if the kernel has none.
_COMPAT = """
static long compat(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}
"""
SECONDS = 60
PWRITE64, UNSHARE, IO_SETUP, PERF_EVENT_OPEN, OPENAT2 = 18, 272, 206, 298, 437
ABSENT = "/nowhere/user_events_data"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("recorder") / "recorder"
    compile_recorder(program)
    return program


Recorded = Callable[..., tuple[int, list[Group]]]


@pytest.fixture
def record(recorder: Path, tmp_path: Path) -> Recorded:
    """Run a C program: its exit code and its recording."""

    def run(body: str, functions: str = "", prepare: Callable[[], object] | None = None) -> Any:
        source, program, recording = (tmp_path / name for name in ("program.c", "program", "r"))
        source.write_text(f"{_INCLUDES}{_COMPAT}{functions}int main(void)\n{{\n{body}\n}}\n")
        flags = ("-std=gnu11", "-O2", "-static", "-pthread", "-w")
        subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
        command = [str(recorder), str(recording), "none", "16", str(program)]
        process = subprocess.Popen(command, cwd=tmp_path, preexec_fn=prepare)
        try:
            code = process.wait(SECONDS)
        finally:
            # The program ends with the recorder.
            process.kill()
        return code, list(groups(recording.read_text().splitlines(keepends=True)))

    return run


def calls(found: list[Group], *numbers: int) -> list[Call]:
    """The calls with some numbers."""
    return [each for each in found if isinstance(each, Call) and each.number in numbers]


def test_calls_with_unseen_effects_are_written_down(record: Recorded) -> None:
    body = """
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	uint64_t context = 0;

	syscall(SYS_io_setup, 1, &context);
	syscall(SYS_perf_event_open, &attr, -2, -2, -1, 0);
	attr.type = PERF_TYPE_SOFTWARE;
	syscall(SYS_perf_event_open, &attr, -2, -2, -1, 0);
	return unshare(CLONE_FILES);
"""
    code, found = record(body)
    assert code == 0
    numbers = [each.number for each in calls(found, IO_SETUP, PERF_EVENT_OPEN, UNSHARE)]
    assert numbers == [IO_SETUP, PERF_EVENT_OPEN, UNSHARE]


def test_the_whole_open_how_is_read(record: Recorded) -> None:
    body = f"""
	struct open_how how = {{ O_RDWR, 0, RESOLVE_BENEATH }};

	return syscall(SYS_openat2, AT_FDCWD, "{ABSENT}", &how, sizeof(how)) != -1;
"""
    (call,) = calls(record(body)[1], OPENAT2)
    assert call.before.memory[0].data == f"{ABSENT}\0".encode()
    assert call.before.memory[1].data == b"".join(each.to_bytes(8, "little") for each in (2, 0, 8))


def test_credentials_name_another_user_namespace(record: Recorded) -> None:
    body = f"""
	open("{ABSENT}", O_RDONLY);
	if (unshare(CLONE_NEWUSER))
		return 125;
	open("{ABSENT}", O_RDONLY);
	return 0;
"""
    code, found = record(body)
    if code:
        pytest.skip("user namespaces are not allowed here")
    credentials = [each.before.credentials for each in found if isinstance(each, Call)]
    assert [each.in_user_namespace for each in credentials if each] == [False, True]


def test_calls_of_the_32_bit_entry_have_their_names(record: Recorded) -> None:
    body = """
	if (compat(20, 0, 0, 0) != getpid())
		return 125;
	compat(181, 77, 0, 0);
	compat(245, 1, 0, 0);
	compat(310, CLONE_FILES, 0, 0);
	return 0;
"""
    code, found = record(body)
    if code:
        pytest.skip("the kernel has no 32-bit entry")
    made = calls(found, PWRITE64, IO_SETUP, UNSHARE)
    assert [each.number for each in made] == [PWRITE64, IO_SETUP, UNSHARE]
    assert all(each.compat for each in made)


_FUNCTIONS = f"""
static volatile int missing;
static int count;
static void *(*call)(void *);
static void *rest(void *argument)
{{
	pause();
	return argument;
}}
static void start(void *(*function)(void *), int count)
{{
	pthread_t thread;

	for (int number = 0; number < count; number++)
		pthread_create(&thread, NULL, function, NULL);
}}
static void *open_absent(void *argument)
{{
	open("{ABSENT}", O_RDONLY);
	return argument;
}}
static void *ask(void *argument)
{{
	getppid();
	return argument;
}}
/* Until every thread has made its calls. */
static void *work(void *argument)
{{
	for (int made = 1; missing; made++) {{
		call(NULL);
		if (made == count)
			__sync_fetch_and_sub(&missing, 1);
	}}
	return argument;
}}
static void open_fifo(int flags)
{{
	open("user_events_data", flags);
	_exit(0);
}}
"""


def test_a_process_ends_alone_with_all_of_its_threads(record: Recorded) -> None:
    body = """
	for (int round = 0; round < 10; round++) {
		pid_t other = fork();

		if (!other) {
			start(rest, 8);
			usleep(20000);
			_exit(0);
		}
		while (!waitpid(other, NULL, WNOHANG))
			open_absent(NULL);
	}
	return 0;
"""
    _, found = record(body, _FUNCTIONS)
    entries = [each for each in found if isinstance(each, Entry)]
    process_of = {each.numbers[1]: each.numbers[2] for each in entries if each.kind == "fork"}
    exits = [each for each in entries if each.kind == "exiting" and each.numbers[0] in process_of]
    assert len(exits) == 10
    for each in exits:
        end = found.index(Entry("end", (process_of[each.numbers[0]], 0)))
        assert {_kind(between) for between in found[found.index(each) + 1 : end]} <= {"end"}


def test_a_program_is_executed_alone(record: Recorded) -> None:
    body = """
	pid_t other = fork(), reader;

	if (!other) {
		usleep(300000);
		execl("/bin/true", "true", NULL);
	}
	mkfifo("user_events_data", 0600);
	reader = fork();
	if (!reader)
		open_fifo(O_RDONLY);
	waitpid(other, NULL, 0);
	open_fifo(O_WRONLY);
"""
    _, found = record(body, _FUNCTIONS)
    kinds = [_kind(each) for each in found]
    assert kinds.index("overlap") < kinds.index("exec")


def test_a_call_that_needs_another_returns_beside_a_busy_task(record: Recorded) -> None:
    body = """
	pid_t busy, reader, writer;

	mkfifo("user_events_data", 0600);
	busy = fork();
	for (int turn = 0; !busy; turn++) {
		usleep(10000);
		if (turn == 1500)
			_exit(0);
	}
	reader = fork();
	if (!reader)
		open_fifo(O_RDONLY);
	usleep(200000);
	writer = fork();
	if (!writer)
		open_fifo(O_WRONLY);
	waitpid(reader, NULL, 0);
	waitpid(writer, NULL, 0);
	return waitpid(busy, NULL, WNOHANG) || kill(busy, SIGKILL);
"""
    code, found = record(body, _FUNCTIONS)
    assert code == 0
    assert "overlap" in map(_kind, found)


@pytest.mark.parametrize(("call", "threads", "count"), [("ask", 40, 300), ("open_absent", 12, 30)])
def test_every_thread_has_its_turn(record: Recorded, call: str, threads: int, count: int) -> None:
    body = f"""
	call = {call}, count = {count}, missing = {threads};
	start(work, {threads});
	while (missing)
		usleep(1000);
	return 0;
"""
    assert record(body, _FUNCTIONS)[0] == 0


def test_tasks_that_are_killed_at_any_moment_end(record: Recorded) -> None:
    body = """
	for (int round = 0; round < 60; round++) {
		pid_t other = fork();

		if (!other) {
			setpgid(0, 0);
			start(open_absent, 2);
			for (;;)
				if (!fork())
					_exit(0);
		}
		setpgid(other, other);
		usleep(round * 100);
		kill(-other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	return 0;
"""
    code, found = record(body, _FUNCTIONS)
    assert code == 0
    kinds = [_kind(each) for each in found]
    assert kinds.count("end") == kinds.count("fork") + kinds.count("stranger") + 1
    assert "overlap" not in kinds


def test_a_process_that_is_killed_ends_alone(record: Recorded) -> None:
    body = """
	call = open_absent, missing = 1;
	for (int round = 0; round < 40; round++) {
		pid_t other = fork();

		if (!other) {
			start(work, 12);
			work(NULL);
		}
		usleep(20000 + round * 100);
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	return 0;
"""
    _, found = record(body, _FUNCTIONS)
    exiting = [each for each in found if _kind(each) == "exiting"]
    # A thread whose creation was not seen may be the last one; few stops can be missed.
    assert len(exiting) > 36


@pytest.mark.parametrize("length", [5, 1000, 1 << 40, (1 << 64) - 8])
def test_control_data_is_not_read_beyond_its_end(record: Recorded, length: int) -> None:
    body = f"""
	char control[64] = {{ 0 }};
	struct msghdr message = {{ .msg_control = control, .msg_controllen = sizeof(control) }};
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);
	int sockets[2];

	socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = {length}u;
	return sendmsg(sockets[0], &message, 0) != -1;
"""
    code, found = record(body)
    assert code == 0
    assert _kind(found[-1]) == "done"


def test_a_caller_may_ignore_its_children(record: Recorded) -> None:
    body = """
	time_t begin = time(NULL);

	for (int at = 0; at < 20; at++)
		getppid();
	return time(NULL) - begin > 10 || signal(SIGCHLD, SIG_DFL) != SIG_IGN;
"""
    assert record(body, prepare=_ignore_children)[0] == 0


def _ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _kind(group: Group) -> str:
    """What a task did, "call" for a system call."""
    return group.kind if isinstance(group, Entry) else "call"
