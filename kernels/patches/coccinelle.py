"""Semantic patches: run Coccinelle over a part of a source tree and return the diff."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from host.deadline import Deadline
from kernels.catalog.patch import ENCODING, Patch
from kernels.errors import BrokenFile
from kernels.tools import child_process

TOOL = "spatch"
# The default places: tracing, and the headers of user_events.
TRACING = "kernel/trace"
HEADERS = "include/**/user_events.h"
SPATCH_S = 900.0
_SOURCES = {".c", ".h"}


def files(patch: Patch, tree: Path) -> tuple[str, ...]:
    """The sources of a tree that a semantic patch runs over.  Raises BrokenFile for none."""
    if patch.places:
        roots = [tree / place for place in patch.places]
    else:
        roots = [tree / TRACING, *tree.glob(HEADERS)]
    found = sorted(
        str(path.relative_to(tree))
        for root in roots
        for path in (root.rglob("*") if root.is_dir() else [root])
        if path.suffix in _SOURCES and path.is_file()
    )
    if not found:
        places = ", ".join(patch.places) or TRACING
        hint = "name a directory of that kernel's source after a colon: fix.cocci:kernel/trace"
        raise BrokenFile(_given(patch), f"{tree.name} has no C source in {places}", hint)
    return tuple(found)


def diff_of(patch: Patch, tree: Path, names: Iterable[str], work: Path) -> str:
    """The diff that a semantic patch makes of some files.

    Raises BrokenFile if spatch fails, or if it matches nothing.
    """
    names = list(names)
    rules = work / "rules.cocci"
    rules.write_text(patch.text, **ENCODING)
    deadline = Deadline(SPATCH_S, f"running {patch.name} over {len(names)} files")
    argv = [TOOL, "--very-quiet", "--no-includes", "--include-headers", "--patch", str(tree)]
    lines: list[str] = []
    status = child_process.run(
        # One process for all: rules may carry over from one file to the next.
        [*argv, "--sp-file", str(rules), *(str(tree / name) for name in names)],
        deadline=deadline,
        on_line=lines.append,
    )
    rules.unlink()
    if status:
        why = " ".join(line for line in lines[-8:] if line.strip())
        raise BrokenFile(_given(patch), f"spatch refuses it: {why}", "correct it, see spatch(1)")
    if not any(line.startswith("@@ ") for line in lines):
        where = ", ".join(patch.places) or f"{TRACING} and the headers of user_events"
        hint = "name other directories after a colon: fix.cocci:kernel/trace,include/linux"
        raise BrokenFile(_given(patch), f"matches nothing in {where}", hint)
    return "".join(f"{line}\n" for line in lines)


def _given(patch: Patch) -> Path:
    return patch.file or Path(patch.name)
