"""The recorder with programs of the host: which calls it writes down, and what it reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vm.recorder.program import compile_recorder
from vm.recorder.recording import Call, Group, groups

_INCLUDES = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
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
PWRITE64, UNSHARE, IO_SETUP, PERF_EVENT_OPEN, OPENAT2 = 18, 272, 206, 298, 437
ABSENT = "/nowhere/user_events_data"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("recorder") / "recorder"
    compile_recorder(program)
    return program


def recorded(recorder: Path, directory: Path, body: str) -> tuple[int, list[Group]]:
    """The exit code of a C program, and its recording."""
    source, program, recording = (directory / name for name in ("program.c", "program", "r"))
    source.write_text(f"{_INCLUDES}{_COMPAT}int main(void)\n{{\n{body}\n}}\n")
    flags = ("-std=gnu11", "-O2", "-static", "-w")
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    command = [str(recorder), str(recording), "none", "16", str(program)]
    code = subprocess.run(command, check=False, timeout=60).returncode
    return code, list(groups(recording.read_text().splitlines(keepends=True)))


def calls(found: list[Group], *numbers: int) -> list[Call]:
    """The calls with some numbers."""
    return [each for each in found if isinstance(each, Call) and each.number in numbers]


def test_calls_with_effects_that_are_not_seen_are_written_down(
    recorder: Path, tmp_path: Path
) -> None:
    body = """
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	uint64_t context = 0;

	syscall(SYS_io_setup, 1, &context);
	syscall(SYS_perf_event_open, &attr, -2, -2, -1, 0);
	attr.type = PERF_TYPE_SOFTWARE;
	syscall(SYS_perf_event_open, &attr, -2, -2, -1, 0);
	return unshare(CLONE_FILES);
"""
    code, found = recorded(recorder, tmp_path, body)
    assert code == 0
    numbers = [each.number for each in calls(found, IO_SETUP, PERF_EVENT_OPEN, UNSHARE)]
    assert numbers == [IO_SETUP, PERF_EVENT_OPEN, UNSHARE]


def test_the_whole_open_how_is_read(recorder: Path, tmp_path: Path) -> None:
    body = f"""
	struct open_how how = {{ O_RDWR, 0, RESOLVE_BENEATH }};

	return syscall(SYS_openat2, AT_FDCWD, "{ABSENT}", &how, sizeof(how)) != -1;
"""
    (call,) = calls(recorded(recorder, tmp_path, body)[1], OPENAT2)
    assert call.before.memory[0].data == f"{ABSENT}\0".encode()
    assert call.before.memory[1].data == b"".join(each.to_bytes(8, "little") for each in (2, 0, 8))


def test_credentials_name_another_user_namespace(recorder: Path, tmp_path: Path) -> None:
    body = f"""
	open("{ABSENT}", O_RDONLY);
	if (unshare(CLONE_NEWUSER))
		return 125;
	open("{ABSENT}", O_RDONLY);
	return 0;
"""
    code, found = recorded(recorder, tmp_path, body)
    if code:
        pytest.skip("user namespaces are not allowed here")
    credentials = [each.before.credentials for each in found if isinstance(each, Call)]
    assert [each.in_user_namespace for each in credentials if each] == [False, True]


def test_calls_of_the_32_bit_entry_have_their_names(recorder: Path, tmp_path: Path) -> None:
    body = """
	if (compat(20, 0, 0, 0) != getpid())
		return 125;
	compat(181, 77, 0, 0);
	compat(245, 1, 0, 0);
	compat(310, CLONE_FILES, 0, 0);
	return 0;
"""
    code, found = recorded(recorder, tmp_path, body)
    if code:
        pytest.skip("the kernel has no 32-bit entry")
    made = calls(found, PWRITE64, IO_SETUP, UNSHARE)
    assert [each.number for each in made] == [PWRITE64, IO_SETUP, UNSHARE]
    assert all(each.compat for each in made)
