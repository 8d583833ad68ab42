"""`uevt client`: run a program and judge its user_events calls by the model."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance.abi.profile import USER_REG_OF
from conformance.cli import one_kernel
from conformance.programs.judgement import Verdict
from conformance.programs.known_bugs import judged
from conformance.programs.text import lines_of
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.options import declare_here
from conformance.session.options import seconds as seconds_of
from conformance.session.recorded_program import RecordedProgram
from conformance.session.target.target import Target
from kernels.errors import HostTrouble, UserMistake

LISTENERS = ("ftrace", "perf", "none")
REFUSED = 4
"""Exit code if the kernel refused calls as the ABI says."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = (
        "uevt client (--kernel K | --tree DIR | --image FILE | --here) [option …] -- COMMAND …"
    )
    group = one_kernel.declare(parser, _perform)
    declare_here(group)
    add = group("program")
    about = "what enables each event as soon as it is registered (default: ftrace)"
    add("--listener", choices=LISTENERS, default="ftrace", help=about)
    about = "end the program after this time; what was recorded is judged"
    add("--deadline", type=seconds_of, metavar="SECONDS", help=about)
    about = "keep the recording in this file"
    add("--recording", type=Path, metavar="FILE", help=about)
    about = "after --: a program and its arguments, or one word that sh parses"
    add("command", nargs="+", metavar="COMMAND", help=about)


def _perform(arguments: argparse.Namespace) -> int:
    """0 if all calls were allowed, 1 if the kernel deviates, 4 if it refused calls as it has to.

    3 without a verdict.  Raises KernelsError.
    """
    hint = "name a kernel of the catalog: --kernel 6.12"
    one_kernel.refuse_model(arguments, "the model runs no programs", hint)
    if arguments.recording is not None:
        arguments.recording = _writable(arguments.recording)
    with one_kernel.resolved(arguments, "run") as target:
        return _judged(arguments, target)


def _writable(file: Path) -> Path:
    """The absolute path of a file that can be written.  Raises UserMistake."""
    try:
        file.open("ab").close()
    except OSError as error:
        raise UserMistake(f"--recording {file}: {error.strerror}", "name a new file") from error
    return file.absolute()


def keep(recording: bytes, file: Path) -> None:
    """Write the recording, after the report.  Raises HostTrouble."""
    try:
        file.write_bytes(recording)
    except OSError as error:
        raise HostTrouble(f"--recording {file}: {error.strerror}", "make room") from error


def _judged(arguments: argparse.Namespace, target: Target) -> int:
    profile = target.profile
    if profile.generation not in USER_REG_OF:
        raise UserMistake(f"{target.abi} is not supported", "its ioctl takes no struct user_reg")
    offset = USER_REG_OF[profile.generation].member("name_args").offset
    program = RecordedProgram(arguments.command, arguments.listener, offset)
    if target.here:
        ended = program.run_here(arguments.deadline, even_so=bool(arguments.even_so))
    else:
        ended = program.run(target, Path.cwd(), arguments.deadline)
    judgement = judged(profile, lambda: ended.groups)
    for line in (*ended.remarks, *lines_of(judgement)):
        print(line)
    if arguments.recording is not None:
        keep(ended.recording, arguments.recording)
    if ended.crashed or judgement.of(Verdict.DEVIATES):
        return exit_code(Ending.UNEXPECTED)
    if not judgement.decided:
        return exit_code(Ending.HOST)
    return REFUSED if judgement.of(Verdict.REFUSED) else exit_code(Ending.PASS)
