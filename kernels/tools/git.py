"""Run git: with which repository, what it may write, and with a deadline."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct, field
from msgspec.structs import replace

from host.deadline import Deadline
from host.progress import Progress, silent, ticking
from kernels.errors import StoreUnusable, TookTooLong
from kernels.tools import child_process

TOOLS = ("git", "setpriv")

# The user's repository is only read: no index is refreshed, none of its programs is run.
_READING = ("--no-optional-locks", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")
# Files unchanged, whatever the user's configuration does with line ends and attributes.
_LITERALLY = {
    "core.autocrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "gc.auto": "0",
}
_NO_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_NO_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"


class GitFailed(Exception):
    """git exited with an error; str() is its last line."""


class Git(Struct, frozen=True):
    """git with options and variables."""

    options: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    progress: Progress = silent

    def at(self, work_tree: Path, index: Path) -> Git:
        """The same with a work tree, which is its directory, and an index, which need not exist."""
        places = {"GIT_WORK_TREE": str(work_tree), "GIT_INDEX_FILE": str(index)}
        return replace(self, variables={**self.variables, **places})

    def run(self, *arguments: str, deadline: Deadline, given: bytes = b"") -> bytes:
        """The standard output of a command.  Raises GitFailed, TookTooLong."""
        tick = ticking(self.progress, deadline)
        with TemporaryFile() as handed:
            handed.write(given)
            handed.seek(0)
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", "git", *self.options, *arguments],
                stdin=handed,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=child_process.environment(**self.variables),
                cwd=self.variables.get("GIT_WORK_TREE"),
                process_group=0,
            )
        with process:
            try:
                output, errors = _communicate(process, deadline, tick)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            status = f"git ended with status {process.returncode}"
            raise GitFailed(lines[-1] if lines else status)
        return output

    def line(self, *arguments: str, deadline: Deadline) -> str:
        """The one line of output of a command."""
        return os.fsdecode(self.run(*arguments, deadline=deadline)).rstrip("\n")


def reading(directory: Path, progress: Progress = silent) -> Git:
    """git in a directory of the user, whose repository stays unchanged."""
    # The user's global ignore file.  Do not fetch objects that a partial clone lacks.
    variables = {**child_process.inherited(["XDG_CONFIG_HOME"]), "GIT_NO_LAZY_FETCH": "1"}
    return Git((*_READING, "-C", str(directory)), variables, progress)


def private(git_directory: Path, alternates: Path | None, progress: Progress = silent) -> Git:
    """git with a repository of ours; `alternates` is only read."""
    settings = [word for name, value in _LITERALLY.items() for word in ("-c", f"{name}={value}")]
    variables = dict(_NO_CONFIGURATION)
    if alternates is not None:
        # Quoted, since a colon separates paths.
        path = str(alternates).replace("\\", r"\\").replace('"', r"\"")
        variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{path}"'
    return Git((f"--git-dir={git_directory}", *settings), variables, progress)


def make(git_directory: Path, object_format: str, deadline: Deadline) -> None:
    """Create an empty repository for `private`.  Raises StoreUnusable."""
    words = ("init", "-q", "--bare", "--template=", f"--object-format={object_format}")
    try:
        Git((), _NO_CONFIGURATION).run(*words, "--", str(git_directory), deadline=deadline)
    except GitFailed as error:
        raise StoreUnusable(git_directory.parent, str(error)) from error
    (git_directory / "info").mkdir(exist_ok=True)
    (git_directory / "info/attributes").write_text(_NO_ATTRIBUTES, encoding="utf-8")


def _communicate(
    process: subprocess.Popen[bytes], deadline: Deadline, tick: Callable[[], None]
) -> tuple[bytes, bytes]:
    """The outputs of a process.  Raises TookTooLong."""
    while not deadline.expired:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=min(child_process.TICK_S, deadline.remaining()))
        tick()
    raise TookTooLong(deadline.what, deadline.seconds)
