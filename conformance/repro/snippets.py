"""The C functions of ``c/`` that a program needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

_DIRECTORY = Path(__file__).parent / "c"
# Each may use those before it.
_ORDER = (
    *("guarded", "single", "lockstep", "enter", "start", "conforms", "answers"),
    *("retry", "settle", "ask", "steps", "shared_steps", "eventually", "shared_eventually"),
    "shared_watch",
    *("peek", "poke", "store", "cat", "echo", "echo_pid", "number_in", "store_number"),
    *("mode_of", "owner_of", "names_in", "pin", "become", "set_capabilities", "refuse"),
    *("socket_pair", "message", "send_descriptor", "receive_descriptor", "int80", "read32"),
    *("runs_ia32", "submit", "own_lines", "without_users", "without_id", "without_lengths"),
    *("without_lines", "without_times", "triggers", "records", "distinct", "perf_records"),
    *("page_records", "fork_as", "clone_as", "leave", "die", "execute", "run", "race", "raw_exit"),
    *("add", "kept", "made", "outlived", "has_status_page"),
)
SINGLE = ("single", "steps", "eventually")
"""Snippets of programs of one process."""
SHARED = (
    *("lockstep", "enter", "start", "settle", "ask", "shared_steps", "shared_eventually"),
    "shared_watch",
)
"""Snippets of programs of several processes."""
_SYMBOL = re.compile(r"^(?:static [^;=\n]*?|#define )\*?(\w+)\(", re.MULTILINE)
_ATTRIBUTE = re.compile(r"__attribute__\(\(.*\)\) ")
_CALL = re.compile(r"\b(\w+)\(")
_INCLUDE = re.compile(r"^#include .*\n+", re.MULTILINE)
_CONDITION = re.compile(r"^#ifdef (\w+)\n(.*?)^#endif\n", re.MULTILINE | re.DOTALL)

CONDITIONS = {
    "WATCHED": re.compile(r"\bwatch\(", re.IGNORECASE),
    "UNWATCHED": re.compile(r"\bunwatch\(", re.IGNORECASE),
    "ANSWERED_MEMORY": re.compile(r"\.memory\b"),
    "MEMORY": re.compile(r"\bwatch\(|\.memory\b", re.IGNORECASE),
    "COUNTED": re.compile(r"\.counted\b"),
    "CHOICE": re.compile(r"\bEXPECT_ONE_OF\("),
}
"""What a program has that needs the lines of a snippet between #ifdef and #endif."""


class Snippet(Struct, frozen=True):
    """Functions and macros that belong together."""

    name: str
    text: str
    symbols: frozenset[str]
    includes: frozenset[str]


@cache
def _snippets() -> tuple[Snippet, ...]:
    found = []
    for name in _ORDER:
        text = (_DIRECTORY / f"{name}.c").read_text()
        includes = frozenset(each.strip() for each in _INCLUDE.findall(text))
        body = _INCLUDE.sub("", text).lstrip("\n")
        symbols = frozenset(_SYMBOL.findall(_ATTRIBUTE.sub("", body)))
        found.append(Snippet(name, body, symbols, includes))
    return tuple(found)


def needed(program: str, without: Sequence[str]) -> tuple[list[str], set[str]]:
    """The texts of the snippets that a program needs, in order, and their includes.

    ``without`` are those that another replaces.
    """
    holds = {name for name, used in CONDITIONS.items() if used.search(program)}
    chosen: list[str] = []
    includes: set[str] = set()
    called = set(_CALL.findall(program))
    for snippet in reversed([each for each in _snippets() if each.name not in without]):
        if snippet.symbols & called:
            text = _CONDITION.sub(lambda found: found[2] if found[1] in holds else "", snippet.text)
            chosen.insert(0, text)
            includes |= snippet.includes
            called |= set(_CALL.findall(text))
    return chosen, includes
