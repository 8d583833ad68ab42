"""The command `uevt`: a thin layer over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from conformance.cli.command_parser import CommandParser
from conformance.cli.command_tree import commands_of
from conformance.cli.examples import epilog
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from host import interruption
from host.text import complain, discard, escape_unencodable
from kernels.errors import KernelsError, KernelTrouble, UserMistake

# Each command and its purpose.
_COMMANDS = {
    "doctor": "check whether this machine can run the suite",
    "kernels": "the kernels of the catalog",
    "run": "judge kernels",
    "shell": "run a shell or a command in a guest; the working directory is /host there",
    "client": "run a program and judge its user_events calls by the model",
    "selftests": "run upstream's selftests of a kernel's own source beside our cases",
    "explore": "run random programs on a kernel, in lock step with the model",
    "cases": "list the cases and what each of them proves",
    "compare": "compare two runs",
    "repro": "print a case, or a failure of a run, as a stand-alone program",
    "bundle": "pack a failure of a run into one file: program, answers, kernel, patches",
    "replay": "run the program of a bundle on kernels; name the first diverging operation",
    "merge": "join the shards of a run (uevt run --shard) into one run",
    "matrix": "judge many kernels, on several machines",
    "worker": "judge kernels for a scheduler (uevt matrix --scheduler), until it ends",
    "report": "show several runs side by side",
    "history": "find when the outcome of a case changed",
    "export": "convert runs to other formats",
    "pull-lab": "run a job of KernelCI's pull labs, and write its results for KCIDB",
    "bisect": "find the first commit at which a case fails",
    "completion": "print the completion script of a shell",
}
# Variables that name a directory, relative to the user's working directory.
_DIRECTORIES = ("UEVT_CACHE", "UEVT_TARBALLS")
# Modules that do not have the name of their command.
_MODULES = {"matrix": "matrix.command", "bisect": "bisect.command"}
# The exit code of a shell for a program killed by SIGPIPE.
_SIGPIPE_EXIT = 128 + signal.SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    _open_standard_descriptors()
    escape_unencodable(sys.stdout)
    # SIGTERM ends a build like Ctrl-C: its objects stay.
    interruption.by_sigterm()
    argv = sys.argv[1:] if argv is None else argv
    style = _style(argv)
    try:
        _make_directories_absolute()
        arguments = build_parser(argv).parse_args(argv)
        code: int = arguments.perform(arguments)
        sys.stdout.flush()
    except SystemExit as ended:
        # argparse has printed the error, or the help.
        return exit_code(Ending.USAGE if ended.code else Ending.PASS, style)
    except (UserMistake, ReportError) as error:
        return _fail(error, Ending.USAGE, style)
    except KernelTrouble as error:
        return _fail(error, Ending.BUILD_FAILED, style)
    except BrokenPipeError:
        # The reader of our output is gone, and may have missed an error.
        discard(sys.stdout)
        return _SIGPIPE_EXIT
    except (KernelsError, OSError) as error:
        if isinstance(error, FileNotFoundError) and error.filename is None:
            # Of getcwd(2): a relative name has no meaning.
            gone = UserMistake("the working directory was removed", "change to another one")
            return _fail(gone, Ending.USAGE, style)
        return _fail(error, Ending.HOST, style)
    except KeyboardInterrupt:
        complain("interrupted")
        return exit_code(Ending.INTERRUPTED, style)
    except Exception:
        # A bug of ours: Python's own code is that of a FAIL, and of a bad commit.
        traceback.print_exc()
        return exit_code(Ending.HOST, style)
    return code


def _open_standard_descriptors() -> None:
    """Open missing standard descriptors, so that no other file gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open(2) returns the lowest free number.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _make_directories_absolute() -> None:
    """Make directories in the environment absolute: sessions and tasks run in the checkout."""
    for name in _DIRECTORIES:
        if os.environ.get(name):
            os.environ[name] = str(Path(os.environ[name]).absolute())


def _style(argv: Sequence[str]) -> ExitStyle:
    """The exit style, even of an invalid command line."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--exit-style", type=ExitStyle, default=ExitStyle.DEFAULT)
    try:
        style: ExitStyle = parser.parse_known_args(argv)[0].exit_style
    except argparse.ArgumentError:
        return ExitStyle.DEFAULT
    return style


def _fail(error: Exception, ending: Ending, style: ExitStyle) -> int:
    complain(getattr(error, "with_hint", error))
    return exit_code(ending, style)


def version() -> str:
    """The version of this suite."""
    from importlib.metadata import version as installed

    return installed("uevt")


def version_line() -> str:
    """Version and revision, which is what results record."""
    from conformance.session.controller.run_head import suite_revision

    return f"uevt {version()} ({suite_revision()})"


class _Version(argparse.Action):
    """Print the version and the revision of the checkout."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version_line())
        parser.exit()


def build_parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser, with the arguments of the command that ``argv`` calls, by default of all.

    Only the modules of these commands are imported.
    """
    parser = CommandParser(
        prog="uevt", description="Conformance suite for the Linux user_events ABI."
    )
    parser.add_argument("--version", action=_Version, help="print version and revision")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    called = next((word for word in argv or () if not word.startswith("-")), "")
    for name, about in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        if argv is None or name == called:
            module = _MODULES.get(name, name.replace("-", "_"))
            import_module(f"conformance.cli.{module}").declare(command)
    for each in commands_of(parser):
        each.parser.formatter_class = argparse.RawDescriptionHelpFormatter
        each.parser.epilog = epilog(each.name)
    return parser
