"""Split console text into messages.

The kernel writes a record as `<level>[seconds][caller] text`.  A panic may interrupt another
record, and programs write arbitrary text between records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

#: Prefix of the marks that `Machine.mark` writes.
MARK_PREFIX = "uevt-mark "

#: kernel/printk/printk.c: print_time pads to five digits, so a stamp is longer than the name of a
#: process and cannot be forged by one.
_STAMP = r"(?:<\d{1,3}>)?\[(?: {0,4}\d{1,5}|\d{6,})\.\d{6}\](?:\[ *[TC]\d+\])? ?"
_PREFIX = re.compile(_STAMP)
#: A stamp in the middle of a line: one record interrupts another.
_CUT_IN = re.compile(rf"(?<=.)(?<!<\d>)(?<!<\d\d>)(?<!<\d\d\d>)(?={_STAMP})")
#: A complete mark; the prefix alone may occur in the name of a process.
_MARK = re.compile(rf"{MARK_PREFIX}\d+ ([\w. :-]*)")
#: init/main.c prints the command line, which may contain anything.
_COMMAND_LINE = re.compile(r"(?:Kernel c|C)ommand line: |Unknown kernel command line parameters ")
#: Longer than a printk record (PRINTK_MESSAGE_MAX).  Lines of programs are cut here, because some
#: patterns are slow on long lines.
_LONGEST = 2048
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\^_c])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Mark(Struct, frozen=True):
    """A line written to the guest's log, and the console position before it."""

    line: str
    position: int


class Message(Struct, frozen=True):
    """A message, and its line number on the console from 1."""

    line: int
    text: str

    @property
    def mark(self) -> str | None:
        """The text of a mark, None for any other message."""
        found = _MARK.fullmatch(self.text.rstrip())
        return None if found is None else found[1]


def messages(text: str) -> Iterator[Message]:
    """All messages of a console text, without stamps and escape sequences."""
    # Not splitlines(), which also splits at other characters.
    for number, line in enumerate(text.split("\n"), start=1):
        line = _CONTROL.sub("", _ESCAPES.sub("", line))
        if _COMMAND_LINE.search(line):
            yield Message(number, _PREFIX.sub("", line[:_LONGEST], count=1))
            continue
        for part in _CUT_IN.split(line):
            yield Message(number, _PREFIX.sub("", part[:_LONGEST], count=1))
