"""Parts of the recorder with fakes of the rest.

Descriptors in messages of 64-bit and 32-bit callers, in a faked memory; listeners on a machine of
many processors.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from vm.recorder.program import _SOURCE

SENDMSG, RECVMSG, RECVMMSG, SENDMMSG = 46, 47, 299, 307
SOCKETCALL = 102
SOL_SOCKET, SCM_RIGHTS, SCM_CREDENTIALS = 1, 1, 2
# Words of an address or a length, by the number of bits of the caller.
WORDS = {64: "Q", 32: "I"}
# The memory of the caller: one range.
BASE = 0x10000
_STUBS = """
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "recorder.h"
static uint8_t memory[1 << 16];
static size_t end;
size_t read_memory(pid_t tid, uint64_t address, void *to, size_t length)
{
	(void)tid;
	if (address < BASE || address - BASE > end)
		return 0;
	if (length > end - (address - BASE))
		length = end - (address - BASE);
	memcpy(to, memory + (address - BASE), length);
	return length;
}
uint64_t load_number(pid_t tid, uint64_t address, size_t size)
{
	uint64_t value = 0;

	read_memory(tid, address, &value, size);
	return value;
}
bool is_tracefs(pid_t tid, int fd) { (void)tid; return fd >= 100; }
void write_returned(const struct task *task, int64_t result)
{
	printf("call %d\\nexit %d %" PRId64 "\\n", task->call.number, task->tid, result);
}
void write_file(pid_t tid, int fd) { (void)tid; printf("file %d\\n", fd); }
/* NUMBER COMPAT RESULT A0 A1 A2, and the memory as standard input. */
int main(int count, char **words)
{
	struct task task = { .tid = 7, .call = { atoi(words[1]), atoi(words[2]), { 0 } } };

	for (int at = 4; at < count; at++)
		task.call.arguments[at - 4] = strtoull(words[at], NULL, 0);
	end = fread(memory, 1, sizeof(memory), stdin);
	if (task.call.compat)
		translate_compat(&task);
	write_sent(&task);
	write_messages(&task, atoi(words[3]));
	return 0;
}
"""


def compiled(directory: Path, *words: str) -> Path:
    """A program of main.c and other sources."""
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", "main", *words]
    subprocess.run(command, cwd=directory, check=True, timeout=60)
    return directory / "main"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that writes down the messages of one call."""
    directory = tmp_path_factory.mktemp("messages")
    (directory / "main.c").write_text(_STUBS)
    sources = (str(_SOURCE / name) for name in ("messages.c", "compat.c"))
    return compiled(directory, f"-DBASE={BASE}", f"-I{_SOURCE}", "main.c", *sources)


def written(reader: Path, call: int, bits: int, result: int, memory: bytes, *words: int) -> str:
    """The lines of a call whose second argument is the beginning of the memory, in one."""
    numbers = (call, bits == 32, result, *words)
    command = [str(reader), *(str(int(each)) for each in numbers)]
    done = subprocess.run(command, input=memory, capture_output=True, check=True, timeout=60)
    return done.stdout.decode().replace("\n", " ").strip()


def control(bits: int, *parts: tuple[int, list[int]], length: int | None = None) -> bytes:
    """Control data; a length replaces that of the last part."""
    word = struct.calcsize(WORDS[bits])
    data = b""
    for at, (kind, numbers) in enumerate(parts, 1):
        size = word + 8 + 4 * len(numbers)
        said = length if length is not None and at == len(parts) else size
        data += struct.pack(f"<{WORDS[bits]}2i", said, SOL_SOCKET, kind)
        data += struct.pack(f"<{len(numbers)}i", *numbers) + bytes(-size % word)
    return data


def messages(bits: int, *controls: bytes) -> bytes:
    """A vector of struct mmsghdr, whose first member is a struct msghdr, and the control data."""
    size = struct.calcsize(f"<8{WORDS[bits]}")
    headers, data, place = b"", b"", BASE + size * len(controls)
    for each in controls:
        words = (0, 0, 0, 0, place + len(data), len(each), 0, 0)
        headers += struct.pack(f"<8{WORDS[bits]}", *words)
        data += each
    return headers + data


@pytest.mark.parametrize("bits", [64, 32])
def test_descriptors_of_tracefs_are_written_down(reader: Path, bits: int) -> None:
    memory = messages(
        bits, control(bits, (SCM_CREDENTIALS, [100, 0, 0]), (SCM_RIGHTS, [3, 101, 102]))
    )
    call = {64: SENDMSG, 32: 370}[bits]
    lines = f"call {SENDMSG} exit 7 0 file 101 file 102"
    assert written(reader, call, bits, 1, memory, 9, BASE) == lines
    refused = f"{lines} {lines.replace('exit 7 0', 'exit 7 -32')}"
    assert written(reader, call, bits, -32, memory, 9, BASE) == refused


@pytest.mark.parametrize("bits", [64, 32])
def test_several_messages_are_received(reader: Path, bits: int) -> None:
    parts = [control(bits, (SCM_RIGHTS, [number])) for number in (100, 101, 102)]
    call = {64: RECVMMSG, 32: 337}[bits]
    one, other = (f"call {RECVMMSG} exit 7 2 file {number}" for number in (100, 101))
    assert written(reader, call, bits, 2, messages(bits, *parts), 9, BASE, 3) == f"{one} {other}"


@pytest.mark.parametrize(("number", "call"), [(16, SENDMSG), (17, RECVMSG)])
def test_socketcall_is_unpacked(reader: Path, number: int, call: int) -> None:
    memory = messages(32, control(32, (SCM_RIGHTS, [100])))
    place = BASE + len(memory)
    memory += struct.pack("<3I", 9, BASE, 0)
    found = written(reader, SOCKETCALL, 32, 0, memory, number, place)
    assert found == f"call {call} exit 7 0 file 100"
    # socket(2), and a number beyond the last one.
    for other in (1, 1 << 31):
        assert not written(reader, SOCKETCALL, 32, 0, memory, other, place)


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("length", [0, 11, 200, (1 << 31) + 12, (1 << 32) - 4])
def test_a_part_with_a_wrong_length_ends_the_message(reader: Path, bits: int, length: int) -> None:
    parts = ((SCM_RIGHTS, [100]), (SCM_RIGHTS, [101]))
    memory = messages(bits, control(bits, *parts, length=length))
    call = {64: SENDMSG, 32: 370}[bits]
    assert written(reader, call, bits, 0, memory, 9, BASE) == f"call {SENDMSG} exit 7 0 file 100"


CPUS = 100
_STUBS_OF_LISTENERS = """
#include <stdlib.h>
void say(const char *format, ...) { (void)format; }
void say_bytes(const void *bytes, size_t length) { (void)bytes, (void)length; }
void flush_output(void) {}
void give_up(const char *what) { (void)what; exit(9); }
"""
# mmap(2) of /dev/null is ENODEV.
_PERF = """
#include <fcntl.h>
#include <unistd.h>
#define sysconf(name) CPUS
#define syscall(...) open("/dev/null", O_RDWR)
#include "perf.c"
int main(void)
{
	int first = dup(0), error, next;

	close(first);
	error = perf_listen(1, CPUS - 1);
	next = dup(0);
	return error == ENODEV && next == first ? 0 : 1;
}
"""
_FTRACE = """
#include <sys/stat.h>
#include <unistd.h>
#define sysconf(name) CPUS
#define mkdir(path, mode) 0
#include "listener.c"
size_t read_memory(pid_t a, uint64_t b, void *c, size_t d) { (void)a, (void)b, (void)c; return d; }
int perf_listen(int id, int cpu) { return id + cpu; }
void perf_collect(void) {}
int main(void)
{
	struct rlimit few = { CPUS / 2, 2 * CPUS }, now;

	setrlimit(RLIMIT_NOFILE, &few);
	listener = LISTENER_FTRACE;
	begin_listening();
	getrlimit(RLIMIT_NOFILE, &now);
	return listener == LISTENER_FTRACE && cpus == CPUS && now.rlim_cur == few.rlim_cur ? 0 : 1;
}
"""


def exit_code(main: str, instance: Path) -> int:
    """That of a program with a source of the recorder, whose instance is a directory."""
    directory = instance.parent
    for name in ("listener.c", "perf.c", "recorder.h"):
        text = (_SOURCE / name).read_text()
        text = text.replace('#define INSTANCE TRACEFS "/instances/uevt"', "")
        (directory / name).write_text(text)
    (directory / "main.c").write_text(f"#define _GNU_SOURCE\n{main}{_STUBS_OF_LISTENERS}")
    program = compiled(directory, f"-DCPUS={CPUS}", f'-DINSTANCE="{instance}"', "main.c")
    return subprocess.run([program], check=False, timeout=60, close_fds=True).returncode


def test_perf_closes_what_it_cannot_use_on_any_processor(tmp_path: Path) -> None:
    assert exit_code(_PERF, tmp_path / "instance") == 0


def test_every_processor_is_read_and_the_program_keeps_its_limit(tmp_path: Path) -> None:
    instance = tmp_path / "instance"
    for cpu in range(CPUS):
        directory = instance / f"per_cpu/cpu{cpu}"
        directory.mkdir(parents=True)
        (directory / "trace_pipe_raw").touch()
    assert exit_code(_FTRACE, instance) == 0
