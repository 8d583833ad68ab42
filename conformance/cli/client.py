"""`uevt client`: run a program and judge its user_events calls by the model."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.abi.profile import USER_REG_OF, ProfileError
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.launch import make_directories_absolute
from conformance.session.options import (
    KERNEL,
    declare_here,
    declare_kernel,
    groups_of,
    make_absolute,
)
from conformance.session.options import seconds as seconds_of
from kernels.errors import HostTrouble, UserMistake

if TYPE_CHECKING:
    from conformance.session.target.target import Target

LISTENERS = ("ftrace", "perf", "none")
REFUSED = 4
"""Exit code if the kernel refused calls as the ABI says."""


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    about = "run a program and judge its user_events calls by the model"
    usage = "uevt client (--kernel K | --tree DIR | --image FILE | --here) [option …] -- COMMAND …"
    client = commands.add_parser("client", help=about, usage=usage)
    group = groups_of(client)
    group(KERNEL)("--kernel", metavar="K", help="6.12 or 6.12@REVISION")
    declare_kernel(group)
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
    # What the kernel's options of a run include.
    others = dict.fromkeys(("abi", "out", "ktap", "resume", "isolation"))
    client.set_defaults(perform=_perform, module=[], **others)


def _perform(arguments: argparse.Namespace) -> int:
    """0 if all calls were allowed, 1 if the kernel deviates, 4 if it refused calls as it has to.

    3 without any call.  Raises KernelsError.
    """
    # Imported late: the parser does not need them.
    from conformance.session.target.target import MODEL, resolve
    from vm.errors import VmError

    for number in (signal.SIGTERM, signal.SIGHUP):
        # Like Ctrl-C: clean up first.
        signal.signal(number, signal.default_int_handler)
    if arguments.kernel == MODEL:
        raise UserMistake(
            "the model runs no programs", "name a kernel of the catalog: --kernel 6.12"
        )
    if arguments.recording is not None:
        arguments.recording = _writable(arguments.recording)
    make_absolute(arguments)
    make_directories_absolute()
    try:
        target = resolve(arguments)
        return _judged(arguments, target)
    except ProfileError as error:
        raise UserMistake(str(error), "only kernels with user_events can be run") from error
    except VmError as error:
        raise HostTrouble(str(error), error.hint) from error


def _writable(file: Path) -> Path:
    """The absolute path of a file that can be written.  Raises UserMistake."""
    try:
        file.open("ab").close()
    except OSError as error:
        raise UserMistake(f"--recording {file}: {error.strerror}", "name a new file") from error
    return file.absolute()


def _judged(arguments: argparse.Namespace, target: Target) -> int:
    from conformance.programs.judge import Judge
    from conformance.programs.judgement import Verdict
    from conformance.programs.text import lines_of
    from conformance.session.recorded_program import RecordedProgram

    profile = target.profile
    if profile.generation not in USER_REG_OF:
        raise UserMistake(f"{target.abi} is not supported", "its ioctl takes no struct user_reg")
    offset = USER_REG_OF[profile.generation].member("name_args").offset
    program = RecordedProgram(arguments.command, arguments.listener, offset)
    if target.here:
        ended = program.run_here(arguments.deadline, even_so=bool(arguments.even_so))
    else:
        ended = program.run(target, Path.cwd(), arguments.deadline)
    if arguments.recording is not None:
        arguments.recording.write_bytes(ended.recording)
    judgement = Judge(profile).feed(ended.groups)
    for line in (*ended.remarks, *lines_of(judgement)):
        print(line)
    if ended.crashed or judgement.of(Verdict.DEVIATES):
        return exit_code(Ending.UNEXPECTED)
    if not judgement.judged:
        return exit_code(Ending.HOST)
    return REFUSED if judgement.of(Verdict.REFUSED) else exit_code(Ending.PASS)
