"""Small kernel trees as users have them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 13\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\nNAME = x\n"
FILES = {
    "Makefile": MAKEFILE,
    ".gitignore": "*.o\n.*\n!.gitignore\n/vmlinux\n",
    "init/main.c": "int main;\n",
    "kernel/fork.c": "fork\n",
    "kernel/kexec.c": "kexec\n",
    "scripts/run.sh": "#!/bin/sh\n",
}


def write_sources(tree: Path) -> None:
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(tree), *identity, *words],
        env={"PATH": os.environ["PATH"], "HOME": str(tree.parent), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def commit(tree: Path) -> str:
    git(tree, "commit", "-q", "-a", "--allow-empty", "-m", "x")
    return git(tree, "rev-parse", "HEAD")


def everything(tree: Path) -> dict[str, tuple[object, ...]]:
    """Every path with its times, kind, size and content, git's own files included."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([tree, *tree.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        times = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        found[str(path)] = (*times, status.st_mode, status.st_size, content)
    return found
