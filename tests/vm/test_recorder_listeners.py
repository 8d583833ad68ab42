"""The listeners of the recorder on a machine of many processors, which is faked."""

from __future__ import annotations

import subprocess
from pathlib import Path

from vm.recorder.program import _SOURCE

CPUS = 100
_STUBS = """
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
    (directory / "main.c").write_text(f"#define _GNU_SOURCE\n{main}{_STUBS}")
    flags = (f"-DCPUS={CPUS}", f'-DINSTANCE="{instance}"', "-Wall", "-Wextra", "-Werror")
    subprocess.run(["gcc", *flags, "-o", "main", "main.c"], cwd=directory, check=True, timeout=60)
    program = directory / "main"
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
