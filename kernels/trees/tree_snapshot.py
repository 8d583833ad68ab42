"""The content of a user's working tree or commit, as a git tree id.

Neither the tree nor its repository is written to.  Of a working tree only the ids of files are
computed, in an index of ours: git skips files whose size, times and inode are unchanged, and
handles those written in the same second as the index.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from host.deadline import Deadline
from host.progress import Progress
from host.text import closest
from kernels.catalog.entries import Source
from kernels.errors import UserMistake
from kernels.store.store import Store
from kernels.tools import git
from kernels.tools.git import Git, GitFailed

READ_S = 900.0
# The index of a kernel tree and git's copy of it while it is written.
_INDEX_MIB = 16

_MAKEFILE = b"Makefile"
# Linux has it; other projects that copied its Makefile do not.
_LINUX = "init/main.c"
_NUMBER = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", re.MULTILINE)
# What a build in the tree leaves there, by which the kernel's Makefile refuses another build
# (outputmakefile); some repositories track it.
BUILT = re.compile(rb"\.config|include/(config|generated)/.*|arch/[^/]+/include/generated/.*")
# Sources that no .gitignore may leave out: some repositories track files that theirs names.
_NEEDED = (_MAKEFILE, _LINUX.encode(), b"arch/x86/kernel/vmlinux.lds.S")
# Lines by which .gitignore of a packaged source ignores the source itself.
_IGNORE_ALL = frozenset({"*", "/*"})


class NoKernelTree(UserMistake):
    """A directory or commit without a kernel's source."""

    def __init__(self, where: object, why: str) -> None:
        super().__init__(f"{where} is no kernel tree: {why}", "name the top of a Linux source")


class Snapshot(Struct, frozen=True):
    """`tree` is git's id of the content, `number` the release in its Makefile.

    `commit` is the full id of the commit; None for a working tree.
    """

    tree: str
    number: str
    commit: str | None = None


class UsersTree:
    """A directory of the user, or a commit of its repository, for reading."""

    def __init__(self, source: Source, store: Store, progress: Progress) -> None:
        assert source.tree is not None
        self.directory = source.tree
        self._ref = source.ref
        self._store = store
        self._home = store.trees / source.package
        self._progress = progress

    def snapshot(self) -> Snapshot:
        """Read it; its lock must be held.

        Raises UserMistake, TookTooLong, StoreFull.
        """
        deadline = Deadline(READ_S, f"reading {self.directory}")
        try:
            if self._ref is not None:
                return self._of_commit(self._ref, deadline)
            return self._of_directory(deadline)
        except GitFailed as error:
            self._store.require_space(_INDEX_MIB, deadline.what)
            raise UserMistake(
                f"git cannot read {self.directory}: {error}",
                "make all of its files readable, then try again",
            ) from error

    def ours(self, deadline: Deadline, *, with_theirs: bool) -> Git:
        """git with our repository for this tree.

        `with_theirs` borrows the objects of the user's repository and is for reading only: writing
        an object that exists there would change its time there.
        """
        theirs = self._theirs()
        try:
            kind = theirs.line("rev-parse", "--show-object-format", deadline=deadline)
            place = theirs.line("rev-parse", "--git-path", "objects", deadline=deadline)
            objects = (self.directory / place).absolute()
        except GitFailed:
            kind, objects = "sha1", None
        directory = self._home / f"{kind}.git"
        # Created last.
        if not (directory / "info/attributes").is_file():
            git.make(directory, kind, deadline)
        return git.private(directory, objects if with_theirs else None, self._progress)

    def _theirs(self) -> Git:
        return git.reading(self.directory, self._progress)

    # Working tree

    def _of_directory(self, deadline: Deadline) -> Snapshot:
        if not self.directory.is_dir():
            raise NoKernelTree(self.directory, "no such directory")
        try:
            makefile = (self.directory / "Makefile").read_text("utf-8", errors="replace")
            (self.directory / _LINUX).stat()
        except FileNotFoundError as error:
            missing = Path(error.filename).relative_to(self.directory)
            raise NoKernelTree(self.directory, f"it has no {missing}") from error
        except OSError as error:
            raise NoKernelTree(self.directory, error.strerror or str(error)) from error
        number = _number(makefile, self.directory)
        return Snapshot(self._tree_id(deadline), number)

    def _tree_id(self, deadline: Deadline) -> str:
        """Update our index to the working tree, and return the id of its content."""
        ours = self.ours(deadline, with_theirs=False)
        listing = self._listing(ours, deadline)
        # Left by a killed git: the lock is held.
        (self._home / "index.lock").unlink(missing_ok=True)
        ours = ours.at(self.directory, self._home / "index")
        kept = self._home / "listing"
        if not kept.is_file() or kept.read_bytes() != listing:
            before = ours.run("ls-files", "-z", deadline=deadline)
            gone = _joined(set(before.split(b"\0")) - set(listing.split(b"\0")))
            removal = ("update-index", "-z", "--force-remove", "--stdin")
            ours.run(*removal, deadline=deadline, given=gone)
        update = ("update-index", "-z", "--add", "--remove", "--replace", "--info-only", "--stdin")
        ours.run(*update, deadline=deadline, given=listing)
        kept.write_bytes(listing)
        return ours.line("write-tree", "--missing-ok", deadline=deadline)

    def _listing(self, ours: Git, deadline: Deadline) -> bytes:
        """The source files, each followed by a NUL.

        In a checkout: those that git tracks or would track.  Elsewhere: those that the kernel's
        .gitignore files do not exclude.
        """
        wanted = ("ls-files", "-z", "--others", "--exclude-standard")
        try:
            found = _files(self._theirs().run(*wanted, "--cached", deadline=deadline))
            if _MAKEFILE in found:
                return _joined(found - _directories(self.directory, found))
        except GitFailed:
            pass  # not a checkout
        ours = ours.at(self.directory, self._home / "no-index")
        found = _files(ours.run(*wanted, deadline=deadline))
        if _MAKEFILE not in found:
            rules = [f"--exclude={rule}" for rule in _top_level_rules(self.directory)]
            found = _files(ours.run(*wanted, *rules, deadline=deadline))
        for needed in map(os.fsdecode, (path for path in _NEEDED if path not in found)):
            if (self.directory / needed).exists():
                raise UserMistake(
                    f"the .gitignore of {self.directory} leaves out {needed}",
                    "remove that rule, or give a checkout, whose tracked files are taken",
                )
        return _joined(found)

    # Commit

    def _of_commit(self, ref: str, deadline: Deadline) -> Snapshot:
        theirs = self._theirs()
        try:
            prefix = theirs.line("rev-parse", "--show-prefix", deadline=deadline)
        except GitFailed as error:
            raise UserMistake(
                f"{self.directory} is no git repository: {error}",
                "omit --ref to test the working tree",
            ) from error
        try:
            if ref.startswith("-"):
                raise GitFailed("a ref does not begin with a dash")
            commit = theirs.line(
                "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", deadline=deadline
            )
        except GitFailed as error:
            raise self._unknown(ref, deadline) from error
        where = f"{ref} of {self.directory}"
        try:
            tree = theirs.line("rev-parse", "--verify", f"{commit}:{prefix}", deadline=deadline)
            makefile = theirs.run("cat-file", "blob", f"{tree}:Makefile", deadline=deadline)
            theirs.run("cat-file", "-e", f"{tree}:{_LINUX}", deadline=deadline)
        except GitFailed as error:
            raise NoKernelTree(where, f"it has no Makefile or no {_LINUX}") from error
        number = _number(makefile.decode("utf-8", errors="replace"), where)
        return Snapshot(tree, number, commit)

    def _unknown(self, ref: str, deadline: Deadline) -> UserMistake:
        refs = self._theirs().run("for-each-ref", "--format=%(refname:short)", deadline=deadline)
        close = closest(ref, refs.decode(errors="replace").split())
        hint = "name a commit, tag or branch of it, or fetch it there first"
        return UserMistake(
            f"{self.directory} has no commit {ref!r}", f"did you mean {close}?" if close else hint
        )


def _files(listing: bytes) -> set[bytes]:
    """The paths of a listing without nested repositories, which end in a slash, and built files."""
    found = {path for path in listing.split(b"\0") if path and not path.endswith(b"/")}
    return {path for path in found if not BUILT.fullmatch(path)}


def _directories(tree: Path, paths: Iterable[bytes]) -> set[bytes]:
    """The directories beside some paths.

    A tracked path can be one: a submodule, or what has replaced a file.
    """
    top, found = os.fsencode(tree) + b"/", set[bytes]()
    # For 90,000 files, lstat takes three times as long.
    for parent in {path[: path.rfind(b"/") + 1] for path in paths}:
        with suppress(OSError), os.scandir(top + parent) as entries:
            found |= {parent + each.name for each in entries if each.is_dir(follow_symlinks=False)}
    return found


def _joined(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths) if path)


def _number(makefile: str, where: object) -> str:
    """VERSION.PATCHLEVEL[.SUBLEVEL][EXTRAVERSION], without a SUBLEVEL of 0 ("6.13-rc2")."""
    # The first assignments are those at the beginning.
    numbers = dict(reversed(_NUMBER.findall(makefile)))
    version, level = numbers.get("VERSION", ""), numbers.get("PATCHLEVEL", "")
    if not (version.isdecimal() and level.isdecimal()):
        raise NoKernelTree(where, "its Makefile names no VERSION and PATCHLEVEL")
    sublevel = numbers.get("SUBLEVEL", "") or "0"
    last = "" if sublevel == "0" else f".{sublevel}"
    return f"{version}.{level}{last}{numbers.get('EXTRAVERSION', '')}"


def _top_level_rules(directory: Path) -> list[str]:
    """Exclude rules for a tree whose own .gitignore ignores everything, as in Debian's sources.

    They precede those of all files: everything at the top is a source, except what another line of
    that .gitignore excludes there.
    """
    text = (directory / ".gitignore").read_text("utf-8", errors="replace")
    rules = ["!/*"]
    for line in map(str.strip, text.splitlines()):
        negated, pattern = line.startswith("!"), line.removeprefix("!").removeprefix("/")
        if not pattern or line.startswith("#") or line in _IGNORE_ALL:
            continue
        if "/" not in pattern.rstrip("/"):
            rules.append(f"{'!' if negated else ''}/{pattern}")
    return rules
