"""The parser of the command line: an error names the command at fault, and the likely word."""

from __future__ import annotations

import re
import sys
from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import NoReturn

from host.text import closest

# A word that begins like this names a kernel.
_KERNEL = re.compile(r"\d|model")


class CommandParser(ArgumentParser):
    """A parser of a command or of one of its verbs.

    A word that it does not know is an error of its own: argparse would leave it to the outermost
    parser, whose usage does not help.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse all words.  An unknown one ends the program with exit code 2.

        A command that is called without any of its verbs prints its help, and ends likewise.
        """
        if not args and self._subparsers is not None:
            self.print_help(sys.stderr)
            self.exit(2)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._about(unknown[0]))
        return found, []

    def error(self, message: str) -> NoReturn:
        """End with a line on standard error and exit code 2."""
        see = f" See {self.prog} --help" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: {message}{see}\n")

    def _about(self, word: str) -> str:
        options = self._option_string_actions
        name, equals, value = word.partition("=")
        if name.startswith("-"):
            return f"unknown option {name}" + _meant(closest(name, options), equals + value)
        kernel = "--kernel" in options and _KERNEL.match(word)
        return f"unexpected argument {word!r}" + _meant(f"--kernel {word}" if kernel else None)

    def _check_value(self, action: Action, value: object) -> None:
        """Refuse a value that is no choice, and name the likely one."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        likely = closest(str(value), choices)
        if "run" in choices and _KERNEL.match(str(value)):
            likely = f"run --kernel {value}"
        listed = ", ".join(choices)
        raise ArgumentError(action, f"invalid choice {value!r}, not of {listed}{_meant(likely)}")


def _meant(word: str | None, rest: str = "") -> str:
    return f"; did you mean {word}{rest}?" if word else ""
