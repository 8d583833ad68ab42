"""The lines of a console as their authors wrote them, whatever became of them on the way.

The kernel writes a record as `<level>[seconds][caller] text`; a panic cuts in on whoever is
writing, programs write between records, and what they write may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Every mark that we write ourselves begins thus.
MARK_PREFIX = "uevt-mark "

#: kernel/printk/printk.c:print_time pads to five digits: nothing as short as the name of a
#: process can hold a whole stamp and anything behind it.
_STAMP = r"(?:<\d{1,3}>)?\[(?: {0,4}\d{1,5}|\d{6,})\.\d{6}\](?:\[ *[TC]\d+\])? ?"
_PREFIX = re.compile(_STAMP)
#: What a torn record is followed by.
_CUT_IN = re.compile(rf"(?<=.)(?<!<\d>)(?<!<\d\d>)(?<!<\d\d\d>)(?={_STAMP})")
#: Our own words for a mark: what else begins like one was put there by somebody's name.
_MARK = re.compile(rf"{MARK_PREFIX}\d+ ([\w. :-]*)")
#: init/main.c repeats what the user asked for, which may look like anything.
_REPEATED = re.compile(r"(?:Kernel c|C)ommand line: |Unknown kernel command line parameters ")
#: printk's records are shorter (PRINTK_MESSAGE_MAX); what a program writes to the console need not
#: be, and some patterns take their time over long lines.
_LONGEST = 2048
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\^_c])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Message:
    """What one author wrote on one line of the console, lines counted from 1."""

    line: int
    text: str

    @property
    def mark(self) -> str | None:
        """The words of a mark of ours, None for anything else."""
        found = _MARK.fullmatch(self.text.rstrip())
        return None if found is None else found[1]


def messages(text: str) -> Iterator[Message]:
    """Every message of a console text, without stamps and what moves a terminal's cursor."""
    # Not splitlines: of all that it takes for the end of a line the kernel writes only one.
    for number, line in enumerate(text.split("\n"), start=1):
        line = _CONTROL.sub("", _ESCAPES.sub("", line))
        if _REPEATED.search(line):
            yield Message(number, _PREFIX.sub("", line[:_LONGEST], count=1))
            continue
        for part in _CUT_IN.split(line):
            yield Message(number, _PREFIX.sub("", part[:_LONGEST], count=1))
