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
from pathlib import Path

from msgspec import Struct

from tests.bench.guests import UEVT, tree_of

KERNEL = "6.12"
CASE = "write.nul_needed.data_loc.char_array"
FILE = "kernel/trace/trace_events_user.c"


class Edit(Struct, frozen=True):
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
    environment = {
        **os.environ,
        **{f"GIT_{who}_NAME": "A U Thor" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "author@example.org" for who in ("AUTHOR", "COMMITTER")},
    }

    def git(*words: str, text: str | None = None) -> str:
        where = (f"--git-dir={repository}", f"--work-tree={source}")
        command = ["git", "-c", "gc.auto=0", *where, *words]
        done = subprocess.run(
            command, input=text, env=environment, text=True, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.strip()

    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True)
    git("add", "--all", "--force")
    git("commit", "-q", "-m", f"Linux {KERNEL} as it was packaged")
    text = (source / FILE).read_text()
    for edit in EDITS:
        assert text.count(edit.before) == 1, edit.title
        text = text.replace(edit.before, edit.after)
        blob = git("hash-object", "-w", "--stdin", text=text)
        git("update-index", "--cacheinfo", f"100644,{blob},{FILE}")
        git("commit", "-q", "-m", edit.title)


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
    command = [UEVT, "bisect", "--good", f"main~{len(EDITS)}", "--bad", "main"]
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
