"""The manual page uevt(1), generated from the argument parsers (groff_man(7))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from conformance.cli.command_tree import Command, commands_of, names_of
from conformance.cli.examples import EXAMPLES
from conformance.cli.main import build_parser, version

_SUMMARY = "conformance suite for the Linux user_events ABI"
_EXIT_CODES = (
    ("0", "PASS, or the command has done its work"),
    ("1", "FAIL: the kernel deviates; a regression of compare"),
    ("2", "a usage error"),
    ("3", "no verdict: the host or the guest broke, or the kernel cannot be built"),
    ("130", "interrupted"),
)
_ENVIRONMENT = (
    ("UEVT_CACHE", "directory of the build store (default: the user's cache directory)"),
    ("UEVT_TARBALLS", "directory of tarballs of kernels"),
    ("UEVT_MIRROR", "where tarballs are fetched from (default: kernel.org)"),
    ("NO_COLOR, FORCE_COLOR", "whether output has colours"),
)
# A request at the start of a line.
_REQUEST = re.compile(r"^([.'])", re.MULTILINE)


def render_manual() -> str:
    """The page."""
    commands = list(commands_of(build_parser()))
    lines = [
        f'.TH UEVT 1 "" "uevt {version()}"',
        ".SH NAME",
        f"uevt \\- {_SUMMARY}",
        ".SH SYNOPSIS",
        *(line for each in commands for line in (f".B {_plain(each.usage)}", ".br")),
        ".SH COMMANDS",
        *(line for each in commands for line in _section(each)),
        ".SH EXIT STATUS",
        *_list(_EXIT_CODES),
        ".SH ENVIRONMENT",
        *_list(_ENVIRONMENT),
        ".SH SEE ALSO",
        "README.md and docs/ of the checkout; https://docs.kernel.org/trace/user_events.html",
    ]
    return "\n".join(lines) + "\n"


def _section(command: Command) -> Iterator[str]:
    yield f".SS {_plain(command.usage)}"
    yield _plain(command.sentence)
    for title, actions in command.groups:
        if title:
            yield from (".PP", f".I {_plain(title)}")
        yield from _list(
            (", ".join(names_of(action)), (action.help or "").replace("%%", "%"))
            for action in actions
        )
    if shown := EXAMPLES.get(command.name):
        yield from (".PP", ".I examples")
        yield from _list(shown)


def _list(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, about in rows:
        yield from (".TP", f".B {_plain(term)}", _plain(about))


def _plain(text: str) -> str:
    """Text without requests and escapes; hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return _REQUEST.sub(r"\\&\1", escaped)
