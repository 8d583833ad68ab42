"""`python -m tests.bench.bisecting DIR`: run `uevt bisect` over a synthetic history of Linux 6.12.

The history consists of 6.12 from the store and eight edits of user_events: one breaks a behaviour,
one does not compile.  It is created in DIR, which must not exist, and removed at the end, as are
the built kernels unless UEVT_CACHE is set.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.bench.__main__ import tree_of

KERNEL = "6.12"
CASE = "write.nul_needed.data_loc.char_array"
FILE = "kernel/trace/trace_events_user.c"
UEVT = Path(__file__).parents[2] / ".venv" / "bin" / "uevt"


@dataclass(frozen=True, slots=True)
class Edit:
    """One commit: its title, a text that occurs once, and its replacement."""

    title: str
    before: str
    after: str


_CHECK = "if (likely(validator->flags & VALIDATOR_ENSURE_NULL))"
BAD = "tracing/user_events: Look for the end of relative strings only"
EDITS = (
    Edit(
        "tracing/user_events: Say what the limit is for",
        "/* Limit how long of an event name plus args within the subsystem. */",
        "/* Limit the length of an event's name and arguments together. */",
    ),
    Edit(
        "tracing/user_events: Name the largest array in one place",
        "#define MAX_FIELD_ARRAY_SIZE 1024",
        "#define MAX_FIELD_ARRAY_SIZE (2 * MAX_EVENT_DESC)",
    ),
    Edit(
        "tracing/user_events: Shorten a comment",
        "/* Already done min_size check, no bounds check here */",
        "/* min_size was checked before */",
    ),
    Edit(
        "tracing/user_events: Use the helper for the end of a payload",
        "	void *pos, *end = data + len;",
        "	void *pos, *end = payload_end(data, len);",
    ),
    Edit(
        "tracing/user_events: Spell the helper out where it is used",
        "	void *pos, *end = payload_end(data, len);",
        "	void *pos, *end = (char *)data + len;",
    ),
    Edit(BAD, _CHECK, f"{_CHECK[:-1]} && (validator->flags & VALIDATOR_REL))"),
    Edit(
        "tracing/user_events: Say who writes payloads",
        " * Writes the user supplied payload out to a trace file.",
        " * Writes the user supplied payload out to a trace file, if one is open.",
    ),
    Edit(
        "tracing/user_events: Order two includes",
        "#include <linux/highmem.h>\n#include <linux/init.h>",
        "#include <linux/init.h>\n#include <linux/highmem.h>",
    ),
)


def make_history(source: Path, repository: Path) -> None:
    """Create a repository without work tree whose first commit is a source tree."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    importing = ["git", "-C", str(repository), "fast-import", "--quiet"]
    with subprocess.Popen(importing, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        _commit(process.stdin, 0, f"Linux {KERNEL} as it was packaged")
        for path, mode, content in _files(source):
            _file(process.stdin, path, mode, content)
        text = (source / FILE).read_text()
        for number, edit in enumerate(EDITS, start=1):
            assert text.count(edit.before) == 1, edit.title
            text = text.replace(edit.before, edit.after)
            _commit(process.stdin, number, edit.title)
            _file(process.stdin, FILE, "100644", text.encode())
    assert process.returncode == 0


def _files(source: Path) -> Iterator[tuple[str, str, bytes]]:
    for directory, _, names in os.walk(source):
        for name in names:
            path = Path(directory, name)
            where = str(path.relative_to(source))
            if path.is_symlink():
                yield where, "120000", os.fsencode(path.readlink())
            else:
                executable = path.stat().st_mode & 0o100
                yield where, "100755" if executable else "100644", path.read_bytes()


def _commit(stream: IO[bytes], number: int, title: str) -> None:
    day = 1_700_000_000 + number * 86_400
    message = f"{title}\n".encode()
    stream.write(b"commit refs/heads/main\n")
    stream.write(f"committer A U Thor <author@example.org> {day} +0000\n".encode())
    stream.write(b"data %d\n%s" % (len(message), message))


def _file(stream: IO[bytes], path: str, mode: str, content: bytes) -> None:
    stream.write(f"M {mode} inline {path}\n".encode())
    stream.write(b"data %d\n%s\n" % (len(content), content))


def main() -> int:
    """Create the history and bisect it; 0 if the right commit was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bisecting")
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory.absolute()
    source = tree_of(KERNEL)
    directory.mkdir(parents=True)
    try:
        return _bisect(source, directory)
    finally:
        shutil.rmtree(directory)


def _bisect(source: Path, directory: Path) -> int:
    make_history(source, directory / "linux")
    environment = {"UEVT_CACHE": str(directory / "cache"), **os.environ}
    command = [str(UEVT), "bisect", "--good", f"main~{len(EDITS)}", "--bad", "main"]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--case", CASE, "--out", str(directory / "out")],
        cwd=directory / "linux",
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.strip())
    found = process.returncode == 0 and BAD in lines
    sys.stdout.write(f"{'found' if found else 'not found'} in {time.monotonic() - began:.0f} s\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
