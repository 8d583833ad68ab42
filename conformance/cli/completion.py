"""`uevt completion`: the script that completes command lines of `uevt` in a shell."""

from __future__ import annotations

import argparse
import sys

import shtab

from conformance.cli.command_tree import commands_of
from conformance.cli.main import build_parser
from conformance.results.exit_codes import Ending, exit_code
from kernels.catalog.catalog import load_catalog

SHELLS = ("bash", "zsh", "tcsh")
"""The shells for which there is a script."""
# Placeholders of files and of directories, and of kernels of the catalog.
_FILES, _DIRECTORIES, _KERNELS = ("FILE", "PATH"), ("DIR", "RUN", "BASE", "NEW"), ("K", "KERNEL")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS, help="source the script in this shell")
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    sys.stdout.write(script(build_parser(), arguments.shell))
    return exit_code(Ending.PASS)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell; changes the parser."""
    kernels = list(load_catalog().entries)
    kinds = {**dict.fromkeys(_FILES, shtab.FILE), **dict.fromkeys(_DIRECTORIES, shtab.DIRECTORY)}
    for command in commands_of(parser):
        for action in command.actions:
            if action.metavar in _KERNELS:
                action.choices = kernels
            elif action.metavar in kinds:
                action.complete = kinds[action.metavar]  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)
