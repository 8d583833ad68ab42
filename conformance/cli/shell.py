"""`uevt shell`: a guest to type in, or to run one command in."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from shutil import which

from conformance.cli import one_kernel
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.options import seconds as seconds_of
from conformance.session.program_guest import ProgramGuest, directories_named, program_guest
from conformance.session.target.target import request_of
from host.deadline import Deadline
from host.progress import StreamProgress
from host.temporary_directories import scratch
from host.text import one_line
from kernels.build.build import ensure
from kernels.build.vmlinux import vmlinux
from kernels.store.store import Store
from vm.errors import GuestCrashed
from vm.shell.relay import TimedOut

# The exit code of timeout(1).
_TIMED_OUT = 124
_SHELLS = ("bash", "sh")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt shell (--kernel K | --tree DIR | --image FILE) [option …] [-- COMMAND …]"
    group = one_kernel.declare(parser, _perform)
    add = group("guest")
    about = "end the command after this time, with exit code 124"
    add("--deadline", type=seconds_of, metavar="SECONDS", help=about)
    about = "processors of the guest (default: 1); programs of races need 2"
    add("--cpus", type=int, choices=(1, 2), default=1, help=about)
    about = "let gdb attach to the kernel; print the command"
    add("--gdb", action="store_true", help=about)
    about = "after --: a program and its arguments, or one word that sh parses (default: a shell)"
    add("command", nargs="*", metavar="COMMAND", help=about)


def _perform(arguments: argparse.Namespace) -> int:
    """The exit code of the command; 1 if the kernel crashed, 124 after the deadline.

    Raises KernelsError.
    """
    hint = "name a kernel of the catalog: --kernel 6.12"
    one_kernel.refuse_model(arguments, "the model has no shell", hint)
    more = directories_named(arguments.command or [""], Path.cwd())
    with one_kernel.resolved(arguments, "run") as target, scratch() as directory:
        gdb = directory / "gdb" if arguments.gdb else None
        attach = _gdb_command(arguments, gdb) if gdb else ""
        try:
            work = Path.cwd()
            with program_guest(target, work, gdb, more=more, cpus=arguments.cpus) as guest:
                if attach:
                    _say(f"attach with: {attach}")
                code = _run(guest, arguments)
                for each in guest.reports():
                    _say(f"the kernel reported: {one_line(each.text)}")
                return code
        except GuestCrashed as error:
            _say(one_line(str(error)))
            return exit_code(Ending.UNEXPECTED)


def _run(guest: ProgramGuest, arguments: argparse.Namespace) -> int:
    words: list[str] = arguments.command
    terminal = os.isatty(0) and os.isatty(1)
    if terminal and not words:
        machine = guest.machine
        _say(
            f"{machine.info['release']} {machine.start}; {Path.cwd()} is /host; exit or Ctrl-D ends"
        )
    limit = arguments.deadline
    deadline = None if limit is None else Deadline(limit, "end of the command")
    try:
        return guest.run(_program(words), interactive=terminal, deadline=deadline)
    except TimedOut:
        _say(f"the command did not end within {limit:g} s (--deadline)")
        return _TIMED_OUT


def _program(words: list[str]) -> list[str]:
    """The program to run, found on the host: guests have its programs."""
    if len(words) > 1:
        return words
    if words:
        return ["sh", "-c", *words]
    found = next((name for name in _SHELLS if which(name)), _SHELLS[-1])
    # The startup files of the host's administrator are not meant for guests.
    return [found, "--norc", "--noprofile"] if found == "bash" else [found]


def _gdb_command(arguments: argparse.Namespace, socket: Path) -> str:
    """The command that attaches gdb; for an image without the file of its symbols."""
    words = ["gdb"]
    if arguments.image is None:
        store, progress = Store(), StreamProgress(sys.stderr)
        entry = request_of(arguments).entry(store, progress)
        words.append(str(vmlinux(entry, ensure(entry, store), store, progress)))
    return shlex.join([*words, "-ex", f"target remote {socket}"])


def _say(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"uevt: {text}\n")
