"""The command `uevt`: a thin layer over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from conformance.cli.command_parser import CommandParser
from conformance.cli.command_tree import commands_of
from conformance.cli.examples import epilog
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from host.text import discard
from kernels.errors import KernelsError, KernelTrouble, UserMistake

# The module of each command, imported when it is used.
_COMMANDS = {
    "doctor": "doctor",
    "kernels": "kernels",
    "run": "run",
    "shell": "shell",
    "client": "client",
    "selftests": "selftests",
    "explore": "explore",
    "cases": "cases",
    "compare": "compare",
    "repro": "repro",
    "bundle": "bundle",
    "replay": "replay",
    "merge": "merge",
    "matrix": "matrix.command",
    "worker": "worker",
    "report": "report",
    "history": "history",
    "export": "export",
    "pull-lab": "pull_lab",
    "bisect": "bisect.command",
    "completion": "completion",
}
# The exit code of a shell for a program killed by SIGPIPE.
_SIGPIPE_EXIT = 128 + signal.SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    _open_standard_descriptors()
    # SIGTERM ends a build like Ctrl-C: its objects stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    argv = sys.argv[1:] if argv is None else argv
    style = _style(argv)
    try:
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
        return _fail(error, Ending.HOST, style)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, style)
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
    print(f"uevt: {getattr(error, 'with_hint', error)}", file=sys.stderr)
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


def build_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of the command in ``argv``, or of all commands."""
    parser = CommandParser(
        prog="uevt", description="Conformance suite for the Linux user_events ABI."
    )
    parser.add_argument("--version", action=_Version, help="print version and revision")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = set(argv[:1]) & _COMMANDS.keys() or _COMMANDS
    for name, module in _COMMANDS.items():
        if name in chosen:
            import_module(f"conformance.cli.{module}").declare(commands)
    for command in commands_of(parser):
        command.parser.formatter_class = argparse.RawDescriptionHelpFormatter
        command.parser.epilog = epilog(command.name)
    return parser
