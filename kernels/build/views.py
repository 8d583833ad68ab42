"""Source trees of patched builds, and objects that were built at other paths.

A view is a tree of hard links to a release's files, so that its patches disturb no other build.
kbuild writes absolute paths into the command lines that it compares: objects which are copied, or
moved with their store, get the present paths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from host.deadline import Deadline
from host.progress import Progress, ticking
from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.tools import child_process

LINK_S = 900.0
# Where kbuild and make keep command lines and dependencies.
_COMMANDS = (".cmd", ".d")


def make_view(tree: Path, view: Path, store: Store, progress: Progress) -> None:
    """Create a view of a tree, of copies where the file system has no hard links.

    Raises HostTrouble.
    """
    deadline = Deadline(LINK_S, f"preparing the source of {view.name}")
    tick = ticking(progress, deadline)
    with store.workspace() as work:
        for kind in ("--link", "--reflink=auto"):
            copy = work / kind
            argv = ["cp", "-a", kind, str(tree), str(copy)]
            if not child_process.run(argv, deadline=deadline, on_tick=tick):
                view.parent.mkdir(parents=True, exist_ok=True)
                copy.rename(view)
                return
    store.require_space(1, deadline.what)
    raise HostTrouble(f"{deadline.what} failed", f"check the file system of {store.root}")


def replace_paths(objects: Path, paths: Mapping[Path, Path]) -> None:
    """Replace directories in the command lines and dependencies of an objects directory.

    Times of files stay: make compares them.
    """
    named = {str(old).encode(): str(new).encode() for old, new in paths.items() if old != new}
    if not named:
        return
    longest_first = sorted(named, key=len, reverse=True)
    # No path that goes on, as 6.12+fix after 6.12.
    pattern = re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + rb")(?![\w.+~@-])")
    for directory, _, names in os.walk(objects):
        for name in names:
            if name.endswith(_COMMANDS):
                _rewrite(Path(directory, name), pattern, named)


def _rewrite(file: Path, pattern: re.Pattern[bytes], named: Mapping[bytes, bytes]) -> None:
    before = file.read_bytes()
    after = pattern.sub(lambda match: named[match[1]], before)
    if after != before:
        status = file.stat()
        file.write_bytes(after)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
