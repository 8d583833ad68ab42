"""A recorded program as a stand-alone C program.

It needs system calls only: no library of ours, no kernel header.  Exit status 0: every answer is an
expected one; 1: one deviates, which is printed; 4: the program cannot run here, or is undecided.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence

from msgspec import Struct

from conformance.abi.profile import Generation, Profile
from conformance.ops import tasks
from conformance.repro import literals, snippets
from conformance.repro.errors import NotExpressible
from conformance.repro.statements import Statements
from conformance.results.recorded_program import RecordedStep

_SECONDS = 120
_WIDTH = 92
# The beginning of the names of a program's events.
_PREFIX = re.compile(r"\bt\d{5}_")
_MODULE = re.compile(r"/sys/module/(\w+)/")
# The directory of files that programs of the host write.
_FILES = re.compile(r"/tmp/t\d{5}_files")  # noqa: S108
# Programs that a shell executes, also through `stdbuf -oL`.
_EXECUTED = re.compile(r"(?:\bexec|-oL) ([a-z][\w-]*)")
# A word with its space; spaces in literals do not end it.
_WORD = re.compile(r'(?:"(?:\\.|[^"\\])*"|struct |[^" ])+ ?| ')
_TRACEFS = "/sys/kernel/tracing"
# What statements have that need an optional kernel feature: the condition by which it is missing,
# and its option.  See conformance/runner/kernel_features.py, whose probes may leave traces.
_FEATURES = (
    (
        "SYS_perf_event_open",
        'access("/proc/sys/kernel/perf_event_paranoid", F_OK)',
        "CONFIG_PERF_EVENTS",
    ),
    ("SYS_bpf", "syscall(SYS_bpf, 1000, NULL, 0) < 0 && errno == ENOSYS", "CONFIG_BPF_SYSCALL"),
    (
        r"\bsubmit\(",
        "syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno != EFAULT",
        "CONFIG_IO_URING, and io_uring allowed",
    ),
    (r"\b(int80|read32)\(", "!runs_ia32()", "CONFIG_IA32_EMULATION, enabled"),
    ("CLONE_NEWUSER", 'access("/proc/self/ns/user", F_OK)', "CONFIG_USER_NS"),
    ("/kprobe_events", f'access("{_TRACEFS}/kprobe_events", F_OK)', "CONFIG_KPROBE_EVENTS"),
    (
        r'/dynamic_events".*"e:',
        f'access("{_TRACEFS}/kprobe_events", F_OK) && access("{_TRACEFS}/uprobe_events", F_OK)',
        "CONFIG_KPROBE_EVENTS or CONFIG_UPROBE_EVENTS",
    ),
    ("hist", f'access("{_TRACEFS}/events/sched/sched_switch/hist", F_OK)', "CONFIG_HIST_TRIGGERS"),
    ("snapshot", f'access("{_TRACEFS}/snapshot", F_OK)', "CONFIG_TRACER_SNAPSHOT"),
)
# What programs that call ioctl(2) need: the condition by which it is missing, and its releases.
_STATUS_PAGE = ("!has_status_page()", "5.18 to 6.3")
_INTERFACES = {
    Generation.BYTE_STATUS: _STATUS_PAGE,
    Generation.BIT_STATUS: _STATUS_PAGE,
    Generation.REMOTE_ENABLE: ("has_status_page()", "6.4 and later"),
}
# Addresses above 4 GiB, and numbers of ioctls that have the size of a pointer.
_OF_64_BITS = '_Static_assert(sizeof(void *) == 8, "compile for 64 bits: without -m32");'
_MOST_ACTORS = 15
_MOST_DESCRIPTORS = 64
# Headers of the functions that steps call directly.
_HEADERS = {
    "fcntl.h": ("open", "fcntl"),
    "sched.h": ("unshare", "sched_setscheduler", "clone_as", "pin"),
    "sys/ioctl.h": ("ioctl",),
    "sys/mman.h": ("mmap", "munmap", "mprotect", "mremap", "madvise", "memfd_create"),
    "sys/mount.h": ("mount", "umount2"),
    "sys/prctl.h": ("prctl",),
    "sys/resource.h": ("setrlimit",),
    "sys/socket.h": ("setsockopt",),
    "sys/stat.h": ("mkdir", "mknod", "chmod"),
    "sys/syscall.h": ("syscall",),
    "linux/io_uring.h": ("submit",),
}


class Description(Struct, frozen=True):
    """What the comment at the head of a program says.

    ``outlived``: the events of the program outlive it, which is to be shown.  ``file`` is the name
    of the source, "" for that of the case.
    """

    case: str
    sentence: str
    reference: str
    kernel: str
    outlived: bool = False
    file: str = ""


def c_program(steps: Sequence[RecordedStep], profile: Profile, description: Description) -> str:
    """The source.  Raises NotExpressible, with the reason."""
    if not steps:
        raise NotExpressible("the result has no recorded program")
    statements = Statements(steps, profile)
    body = statements.lines()
    while body and not body[-1]:
        body.pop()
    if len(statements.actors.numbered) > _MOST_ACTORS:
        raise NotExpressible("too many processes")
    return _Source(statements, body, profile.generation, description).text()


class _Source:
    """The parts of one file."""

    def __init__(
        self, statements: Statements, body: list[str], interface: Generation, about: Description
    ) -> None:
        self._statements = statements
        self._actors = statements.actors
        self._body = body
        self._interface = interface
        self._about = about

    def text(self) -> str:
        code = "\n".join([*self._program(), *self._main()])
        without = snippets.SHARED if self._actors.single else snippets.SINGLE
        chosen, includes = snippets.needed(code, without)
        code_words = set(re.findall(r"\w+(?=\()", "\n".join(self._body)))
        headers = [name for name, used in _HEADERS.items() if code_words.intersection(used)]
        includes |= {f"#include <{name}>" for name in ("unistd.h", "stdio.h", *headers)}
        parts = [
            self._comment(),
            "#define _GNU_SOURCE",
            "\n".join(sorted(includes | {"#include <linux/types.h>"})),
            _OF_64_BITS,
            *self._declarations(code),
            *chosen,
            code,
        ]
        return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"

    def _comment(self) -> str:
        about = self._about
        file = shlex.quote(about.file) if about.file else f"{about.case}.c"
        lines = [
            "// SPDX-License-Identifier: GPL-2.0",
            "/*",
            f" * {about.case}",
            " *",
            *(f" * {line}" for line in textwrap.wrap(about.sentence, 96)),
            *(f" * {line}" for line in textwrap.wrap(about.reference, 96)),
            " *",
            f" * The expected answers are those of {about.kernel}.",
            f" * Build: gcc -Wall -Wextra -Werror -O1 -static -o repro {file}",
            " * Run as root.  Exit status: 0 as expected, 1 a step deviates, 4 undecided or unable",
            f" * to run here.  SIGALRM ends a program that hangs for {_SECONDS} s.",
            " */",
        ]
        return "\n".join(
            literals.comment(line.rstrip()) if 1 < n < len(lines) - 1 else line
            for n, line in enumerate(lines)
        )

    def _declarations(self, code: str) -> list[str]:
        declared = []
        if any(name in code for name in ("DIAG_IOCS", "struct user_")):
            declared.append("\n".join(self._statements.structures.declarations()))
        areas = [
            f"#define {name} ((char *){start:#x})"
            for name, start in literals.AREAS.items()
            if re.search(rf"\b{name}\b", code)
        ]
        if re.search(r"\bGUARD\b", code):
            areas.append(literals.GUARD_DEFINED)
        numbers = self._actors.numbered
        named = {number: self._statements.names[actor] for actor, number in numbers.items()}
        if not self._actors.single:
            named.setdefault(0, "MAIN")
        if not self._actors.single or "MAIN" in code:
            areas.append(f"enum {{ {', '.join(named[number] for number in sorted(named))} }};")
        declared += ["\n".join(areas)] if areas else []
        names = self._statements.descriptors.names
        if names and not self._executes:
            listed = ", ".join(f"{name} = -1" for name in names)
            declared.append("\n\t".join(textwrap.wrap(f"static int {listed};", 90)))
        return declared

    @property
    def _executes(self) -> bool:
        return any(isinstance(each, tasks.Exec) for each in self._statements.program)

    def _program(self) -> list[str]:
        if self._actors.single:
            return []
        names = self._statements.descriptors.names
        defines = []
        if self._executes:
            if len(names) > _MOST_DESCRIPTORS:
                raise NotExpressible("too many descriptors")
            defines = [f"#define {n} (state->descriptors[{i}])" for i, n in enumerate(names)]
            defines.append("")
        return [
            *defines,
            "static void program(int me, int from)",
            "{",
            *_indented(self._body),
            "\tif (me != MAIN)",
            "\t\tfor (;;)",
            "\t\t\tpause();",
            "}",
            "",
        ]

    def _main(self) -> list[str]:
        data_file = f'access("{_TRACEFS}/user_events_data", F_OK)'
        checks = _unable("geteuid()", "needs root")
        checks += _unable(data_file, "no user_events here, or tracefs is not mounted")
        body = "\n".join(self._body)
        if "DIAG_IOCS" in body and self._interface in _INTERFACES:
            missing, releases = _INTERFACES[self._interface]
            checks += _unable(missing, f"needs the user_events of {releases}")
        for used, missing, option in _FEATURES:
            if re.search(used, body):
                checks += _unable(missing, f"needs {option}")
        for program in sorted(set(_EXECUTED.findall(body))):
            missing = f'system("command -v {program} >/dev/null")'
            checks += _unable(missing, f"needs the program {program}")
        for place in sorted(set(_FILES.findall(body))):
            checks += _unable(f'system("rm -rf {place}")', f"cannot remove {place}")
        for module in sorted(set(_MODULE.findall(body))):
            missing = f'access("/sys/module/{module}", F_OK)'
            checks += _unable(missing, f"needs the kernel module {module}")
        if any("pin(1)" in line for line in self._body):
            one = "sysconf(_SC_NPROCESSORS_ONLN) < 2"
            checks += _unable(one, "needs two processors (uevt shell --cpus 2)")
        checks += [f"\talarm({_SECONDS});"]
        if self._actors.single:
            statements = _indented(self._body)
            end = ['\tputs("as expected");', "\treturn 0;", "}"]
            main = ["int main(void)", "{", *checks, "", *statements, "", *end]
        else:
            main = self._main_of_several(checks)
        return self._outlived(main) if self._about.outlived else main

    def _outlived(self, main: list[str]) -> list[str]:
        """The main function as one that another process performs."""
        prefix = _PREFIX.search("\n".join(self._body))
        if prefix is None or self._executes:
            raise NotExpressible("a program cannot wait for its events after execve(2)")
        *perform, end = main
        perform[0] = "static int perform(void)"
        if not self._actors.single:
            perform.append("\treturn 0;")
        call = f'\treturn outlived(perform, "{prefix[0]}");'
        return [*perform, end, "", "int main(void)", "{", call, "}"]

    def _main_of_several(self, checks: list[str]) -> list[str]:
        executed = [
            "\tif (argc > 1) {",
            "\t\t/* After execve(2). */",
            "\t\tmap_shared();",
            "\t\tstate->value = 0;",
            "\t\tstate->error = 0;",
            "\t\tset(&state->posted, state->posted + 1);",
            "\t\tenter(atoi(argv[1]));",
            "\t}",
        ]
        started = [f"\tstart({self._statements.names[each]});" for each in self._actors.started]
        return [
            "int main(int argc, char **argv)" if self._executes else "int main(void)",
            "{",
            "\tint shared;",
            "",
            *(executed if self._executes else []),
            *checks,
            '\tshared = memfd_create("repro", 0);',
            "\tif (ftruncate(shared, sizeof(*state)) || dup2(shared, SHARED_FD) < 0)",
            "\t\treturn 4;",
            "\tclose(shared);",
            "\tmap_shared();",
            *started,
            "\tprogram(MAIN, 0);",
            '\tputs("as expected");',
            "\tfflush(stdout);",
            "\tfinish(0);",
            "}",
        ]


def _unable(condition: str, why: str) -> list[str]:
    """End a program that cannot run here."""
    return [*_wrapped(f"\tif ({condition}) {{"), f'\t\tputs("{why}");', "\t\treturn 4;", "\t}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"\t{part}" if part else "" for line in lines for part in _wrapped(line)]


def _wrapped(line: str) -> list[str]:
    """A statement in lines of at most 92 columns, broken at spaces outside of literals."""
    tabs = len(line) - len(line.lstrip("\t"))
    start = "\t" * tabs
    parts: list[str] = []
    for text in line.lstrip("\t").split("\n"):
        words = _WORD.findall(text.strip())
        current = ""
        for word in words:
            if current and len(current) + len(word) > _WIDTH - 8 * tabs:
                parts.append(current.rstrip())
                current = "\t"
            current += word
        parts.append(("\t" if parts and not current.startswith("\t") else "") + current.rstrip())
    return [start + part for part in parts]
