"""Find the commit of a user's repository that changed an answer, with `git bisect`.

The user's repository is only read.  git bisects a bare repository of ours that borrows its objects:
it gets no ref, lock, index or file, and nothing is checked out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from host.deadline import Deadline
from host.temporary_directories import scratch
from kernels.errors import HostTrouble, StoreUnusable, UserMistake
from kernels.store.store import Store
from kernels.tools import git
from kernels.tools.git import GitFailed

# For one command: git walks at most a million commits.
_GIT_S = 600.0
_OUTCOME = re.compile(r"^# (possible )?first bad commit: \[([0-9a-f]+)\]", re.MULTILINE)
_STEPS = re.compile(r"^bisect_steps=(\d+)$", re.MULTILINE)


class Answer(StrEnum):
    """The verdict about one commit, a verb of git-bisect(1)."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


class NotBetween(UserMistake):
    """Two commits without a history between them."""


class Commit(Struct, frozen=True):
    """A commit: full id, title, author ("name <address>"), day, and the files it touches."""

    sha: str
    title: str
    author: str
    day: str
    files: tuple[str, ...]


class Bisection:
    """One bisection between two commits.

    `good` and `bad` are full ids in the repository of `directory`; only commits that touch `paths`,
    relative to the top of the repository, are considered; `scratch` is an empty directory of ours.
    Raises NotBetween.
    """

    def __init__(
        self, directory: Path, good: str, bad: str, scratch: Path, paths: Sequence[str] = ()
    ) -> None:
        self._ends = (bad, good)
        self._paths = tuple(paths)
        self._place = scratch / "repository.git"
        self._git = git.reading(directory)
        kind = self._line("rev-parse", "--show-object-format")
        objects = self._line("rev-parse", "--git-path", "objects")
        shallow = self._line("rev-parse", "--git-path", "shallow")
        git.make(self._place, kind, _deadline())
        with suppress(FileNotFoundError):
            # Parents beyond the end of a shallow history are not missing.
            shutil.copyfile(directory / shallow, self._place / "shallow")
        self._git = git.private(self._place, (directory / objects).absolute())
        self._require_order(good, bad)
        # git bisect needs a HEAD.
        self._line("update-ref", "--no-deref", "HEAD", bad)

    @property
    def between(self) -> int:
        """How many commits may be the first bad one, the bad one included."""
        bad, good = self._ends
        return int(self._line("rev-list", "--count", bad, f"^{good}", "--", *self._paths))

    def commit(self, sha: str) -> Commit:
        """Details of a commit."""
        title, author, day = self._line(
            "show", "--no-patch", "--format=%s%x00%an <%ae>%x00%as", sha
        ).split("\0")
        words = ("show", "--format=", "--name-only", "--no-renames", "-z")
        # For a merge: the changes to its first parent.  diff-tree shows those to all parents.
        files = self._line(*words, "-m", "--first-parent", sha).split("\0")
        return Commit(sha, title, author, day, tuple(each for each in files if each))

    def title(self, sha: str) -> str:
        """The title of a commit."""
        return self._line("show", "--no-patch", "--format=%s", sha)

    def keep_log(self, file: Path) -> None:
        """Write the log for `git bisect replay`, if there is one.

        A replay needs a repository with a working tree, and checks commits out there.
        """
        log = self._log.replace("git bisect start '--no-checkout' ", "git bisect start ", 1)
        if log:
            file.write_text(log, "utf-8", errors="surrogateescape")

    @property
    def _log(self) -> str:
        try:
            return (self._place / "BISECT_LOG").read_text("utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return ""

    @property
    def steps(self) -> int:
        """git's estimate of the commits to judge after the current one."""
        words = ("rev-list", "--bisect-vars", *self._bounds)
        found = _STEPS.search(self._line(*words, "--", *self._paths))
        return int(found[1]) if found else 0

    @property
    def suspects(self) -> tuple[str, ...]:
        """The ids of the possible first bad commits; none during the walk.

        None after it if every commit that touches the paths is good.
        """
        found = tuple(found[2] for found in _OUTCOME.finditer(self._log))
        if not (found and self._paths):
            return found
        # After skips, git lists the commits that touch other paths as well.
        left = {*self._left(), self._line("rev-parse", "refs/bisect/bad")}
        return tuple(sha for sha in found if sha in left)

    def _left(self) -> list[str]:
        """The possible first bad commits among those that touch the paths."""
        return self._line("rev-list", *self._bounds, "--", *self._paths).split()

    @property
    def _bounds(self) -> tuple[str, ...]:
        goods = self._line("for-each-ref", "--format=%(refname)", "refs/bisect/good-*").split()
        return "refs/bisect/bad", "--not", *goods

    def walk(self, judge: Callable[[str], Answer]) -> None:
        """Judge commits until the first bad one is known, or only skipped ones or none are left.

        An exception of `judge` ends the walk.  Raises NotBetween, HostTrouble.
        """
        start = ("bisect", "start", "--no-checkout", *self._ends, "--", *self._paths)
        try:
            self._git.run(*start, deadline=_deadline())
        except GitFailed as error:
            raise NotBetween(
                f"git bisect cannot begin: {error}",
                "name other paths, from the top of the repository",
            ) from error
        while not self.suspects:
            answer = judge(self._line("rev-parse", "BISECT_HEAD"))
            try:
                self._git.run("bisect", answer, deadline=_deadline())
            except GitFailed as error:
                # It fails, too, when only skipped commits are left, or none that touches a path.
                if not self.suspects:
                    if not self._left():
                        return
                    hint = "read bisect.log of the results"
                    raise HostTrouble(f"git bisect gave up: {error}", hint) from error

    def _require_order(self, good: str, bad: str) -> None:
        if good == bad:
            raise NotBetween(
                f"the good and the bad commit are the same: {good[:12]}", "name two commits"
            )
        try:
            base = self._line("merge-base", good, bad)
        except HostTrouble:
            base = ""
        if base == good:
            return
        what = f"the good commit {good[:12]} is no ancestor of the bad one {bad[:12]}"
        if base == bad:
            raise NotBetween(f"{what}, but its descendant", "swap them")
        hint = f"name their common ancestor {base[:12]} as good" if base else "name one that is"
        raise NotBetween(what, hint)

    def _line(self, *words: str) -> str:
        """One line of git's output.  Raises HostTrouble."""
        try:
            return self._git.line(*words, deadline=_deadline())
        except GitFailed as error:
            hint = "check that the repository is complete: git fsck"
            raise HostTrouble(f"git {words[0]}: {error}", hint) from error


@contextmanager
def workspace(store: Store) -> Iterator[Path]:
    """A directory for one bisection; those of killed ones are swept first.

    It is not in `work/`, which every build sweeps.  Raises StoreUnusable.
    """
    parent = store.root / "bisect"
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(store.root, error.strerror or str(error)) from error
    with scratch(parent) as directory:
        yield directory


def _deadline() -> Deadline:
    return Deadline(_GIT_S, "git bisect")
