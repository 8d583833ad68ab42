"""Copies of users' trees in the store: one path per tree, so that objects stay valid.

Updating a copy writes only files whose content differs, with the current time: make rebuilds what
depends on them and nothing else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from host.deadline import Deadline
from host.files import read_record, write_record
from host.progress import Progress, Step
from kernels.catalog.entries import Source
from kernels.errors import HostTrouble, StoreUnusable, TookTooLong, UserMistake
from kernels.patches import journal
from kernels.store.store import Store
from kernels.tools.child_process import TICK_S
from kernels.tools.git import Git, GitFailed
from kernels.trees.tree_snapshot import BUILT, READ_S, Snapshot, UsersTree

COPY_S = 1800.0
# One retry is enough for an editor; a program that writes all the time exhausts them.
_ROUNDS = 5

# The path was removed, or is now of another kind.
_ANOTHER_KIND = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)

_SYMLINK = "120000"
_SUBMODULE = "160000"
_EXECUTABLE = "100755"


class _Changed(Exception):
    """A file changed since the snapshot; str() is the file."""


class Change(Struct, frozen=True):
    """The change of one path; `mode` is git's, "000000" for removal."""

    path: str
    mode: str
    blob: str
    same_content: bool

    @property
    def gone(self) -> bool:
        """Whether the copy has nothing at this path."""
        return self.mode in ("000000", _SUBMODULE)


class WorkTree:
    """The copy of one tree, and its record."""

    def __init__(self, source: Source, store: Store, progress: Progress) -> None:
        self.path = store.sources / source.package
        self._store = store
        self._progress = progress
        self._home = store.trees / source.package
        self._users = UsersTree(source, store, progress)

    def snapshot(self) -> Snapshot:
        """The user's tree as it is now.  Raises UserMistake, StoreBusy, StoreUnusable."""
        name, what = f"{self._home.name}-reading", f"reading {self._users.directory}"
        # That of the store as well: gc removes records.
        with self._store.lock(name, what, self._progress):
            try:
                self._home.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreUnusable(self._store.root, error.strerror or str(error)) from error
            return self._users.snapshot()

    def follow(self, tree_mib: int) -> str:
        """Update the copy to the user's tree, and return the id of its content.

        A new copy takes about `tree_mib`.  Its lock must be held. Raises what `snapshot` raises,
        and StoreFull.
        """
        journal.undo(self.path, self._store)
        changed = ""
        for _ in range(_ROUNDS):
            snapshot = self.snapshot()
            try:
                self._update(snapshot, tree_mib)
            except _Changed as error:
                changed = str(error)
                continue
            return snapshot.tree
        raise HostTrouble(
            f"{self._users.directory} changes faster than it can be read: {changed}",
            "stop the program that writes to it, then try again",
        )

    def changed(self, since: str, now: str) -> tuple[str, ...] | None:
        """The paths that differ in two contents; None if git does not know one of them."""
        deadline = Deadline(READ_S, f"comparing two states of {self._users.directory}")
        ours = self._users.ours(deadline, with_theirs=True)
        try:
            return tuple(change.path for change in _diff(ours, since, now, deadline))
        except GitFailed:
            return None

    def digest_without(self, tree: str, left_out: Callable[[str], bool]) -> str:
        """sha256 of a content: modes, ids and paths, except those of some paths.

        The id of the content itself if git does not know it any more.
        """
        deadline = Deadline(READ_S, f"reading a state of {self._users.directory}")
        ours = self._users.ours(deadline, with_theirs=True)
        try:
            listing = ours.run("ls-tree", "-r", "-z", "--full-tree", tree, deadline=deadline)
        except GitFailed:
            return tree
        entries = listing.split(b"\0")
        seen = (each for each in entries if not left_out(os.fsdecode(each.partition(b"\t")[2])))
        return hashlib.sha256(b"\0".join(seen)).hexdigest()

    @property
    def _record(self) -> Path:
        return self._home / "content.json"

    def _update(self, snapshot: Snapshot, tree_mib: int) -> None:
        content = self._content()
        if content == (snapshot.tree, ()):
            return
        deadline = Deadline(COPY_S, f"copying {self._users.directory}")
        ours = self._users.ours(deadline, with_theirs=True)
        try:
            if content is None:
                raise GitFailed
            changes = _changes(ours, *content, snapshot.tree, deadline)
        except GitFailed:
            # There is no copy, or its content is a commit that the user has pruned.
            try:
                content = _empty_tree(ours, deadline), ()
                changes = _changes(ours, *content, snapshot.tree, deadline)
            except GitFailed as error:
                raise self._unreadable(snapshot, deadline, error) from error
            self._start_over(tree_mib)
        before, begun = content
        self._note(before, sorted({*begun, snapshot.tree}))
        self._change(changes, snapshot, ours, deadline)
        self._note(snapshot.tree, ())

    def _content(self) -> tuple[str, tuple[str, ...]] | None:
        """The content of the copy and of interrupted updates; None without a copy."""
        record = read_record(self._record)
        if record is None or not self.path.is_dir():
            return None
        begun = record["begun"]
        assert isinstance(begun, list)
        return str(record["tree"]), tuple(begun)

    def _start_over(self, tree_mib: int) -> None:
        self._store.require_space(tree_mib, f"a copy of {self._users.directory}")
        if self.path.exists():
            with self._store.workspace() as trash:
                self.path.rename(trash / "tree")
        self.path.mkdir(parents=True)

    def _note(self, tree: str, begun: Sequence[str]) -> None:
        """Write the record that `_content` reads."""
        write_record(self._record, {"tree": tree, "begun": list(begun)})

    def _change(
        self, changes: Sequence[Change], snapshot: Snapshot, ours: Git, deadline: Deadline
    ) -> None:
        rewritten = []
        for change in changes:
            file = self.path / change.path
            if change.same_content and not change.gone:
                file.chmod(_permissions(change))
                continue
            if os.path.lexists(file):
                _remove(file)
            if not change.gone:
                rewritten.append(change)
        self._prune(change.path for change in changes if change.gone)
        if not rewritten:
            return
        if snapshot.commit is None:
            self._copy(rewritten, deadline)
        else:
            self._check_out(rewritten, snapshot, ours, deadline)

    def _prune(self, gone: Iterable[str]) -> None:
        """Remove empty directories."""
        parents = {parent for path in gone for parent in Path(path).parents if parent.name}
        for parent in sorted(parents, key=lambda path: -len(path.parts)):
            directory = self.path / parent
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()

    def _copy(self, changes: Sequence[Change], deadline: Deadline) -> None:
        """Copy files of the user's working tree, and check each against the snapshot."""
        reported = 0.0
        for directory in {Path(change.path).parent for change in changes}:
            (self.path / directory).mkdir(parents=True, exist_ok=True)
        # Plain strings: for 90,000 files, path objects take longer than the disk.
        source, target = f"{self._users.directory}/", f"{self.path}/"
        for change in changes:
            if deadline.expired:
                raise TookTooLong(deadline.what, deadline.seconds)
            if deadline.elapsed - reported >= TICK_S:
                reported = deadline.elapsed
                self._progress(Step(deadline.what, elapsed_s=reported, passing=True))
            _copy_one(source + change.path, target + change.path, change)

    def _check_out(
        self, changes: Sequence[Change], snapshot: Snapshot, ours: Git, deadline: Deadline
    ) -> None:
        index = self._home / "commit.index"
        paths = b"".join(os.fsencode(change.path) + b"\0" for change in changes)
        try:
            for words, given in (
                (("read-tree", snapshot.tree), b""),
                (("checkout-index", "--force", "-z", "--stdin"), paths),
            ):
                ours.at(self.path, index).run(*words, deadline=deadline, given=given)
            absent = [one.path for one in changes if not os.path.lexists(self.path / one.path)]
            if absent:
                raise GitFailed(f"{absent[0]} was not checked out")
        except GitFailed as error:
            raise self._unreadable(snapshot, deadline, error) from error
        finally:
            index.unlink(missing_ok=True)

    def _unreadable(
        self, snapshot: Snapshot, deadline: Deadline, error: GitFailed
    ) -> UserMistake | HostTrouble:
        """The error for a content that git cannot read.  Raises StoreFull."""
        self._store.require_space(1, deadline.what)
        if snapshot.commit is None:
            what = f"the record of {self._users.directory} cannot be read: {error}"
            return HostTrouble(what, f"remove {self._home}, then try again")
        return UserMistake(
            f"{snapshot.commit} of {self._users.directory} cannot be read: {error}",
            "check that the repository is complete: git fsck, or git fetch --refetch",
        )


def _copy_one(source: str, target: str, change: Change) -> None:
    """Copy a file.  Raises _Changed if it differs from the snapshot, OSError if unreadable."""
    link = change.mode == _SYMLINK
    try:
        if link:
            content = os.fsencode(os.readlink(source))  # noqa: PTH115
        else:
            with open(source, "rb", buffering=0) as file:  # noqa: PTH123
                content = file.read()
    except OSError as error:
        if error.errno not in _ANOTHER_KIND:
            raise
        raise _Changed(change.path) from error
    if _blob(content, change.blob) != change.blob:
        raise _Changed(change.path)
    if link:
        os.symlink(os.fsdecode(content), target)  # noqa: PTH211
        return
    with open(target, "xb") as file:  # noqa: PTH123
        file.write(content)
        os.fchmod(file.fileno(), _permissions(change))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _changes(
    ours: Git, before: str, begun: Sequence[str], after: str, deadline: Deadline
) -> list[Change]:
    """The changes from a content, or from any mixture of it with interrupted updates."""
    found = {change.path: change for change in _diff(ours, before, after, deadline)}
    for tree in begun:
        for change in _diff(ours, tree, after, deadline):
            # The file may have either content, so its time is meaningless.
            found[change.path] = replace(change, same_content=False)
    return list(found.values())


def _diff(ours: Git, before: str, after: str, deadline: Deadline) -> Iterator[Change]:
    """The changes from one content to another, without reading files."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", before, after)
    fields = ours.run(*words, deadline=deadline).split(b"\0")
    for what, path in zip(fields[0::2], fields[1::2], strict=False):
        if BUILT.fullmatch(path):
            continue
        old_mode, mode, old_blob, blob, _ = what.decode("ascii").removeprefix(":").split()
        plain = _SYMLINK not in (old_mode, mode)
        yield Change(os.fsdecode(path), mode, blob, plain and old_blob == blob)


def _empty_tree(ours: Git, deadline: Deadline) -> str:
    """The id of the empty tree."""
    return ours.run("hash-object", "-t", "tree", "--stdin", deadline=deadline).decode().strip()


def _blob(content: bytes, like: str) -> str:
    """git's id of a file's content, with the hash algorithm of another id."""
    digest = hashlib.new("sha256" if len(like) == 64 else "sha1", usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content) + content)
    return digest.hexdigest()


def _permissions(change: Change) -> int:
    return 0o755 if change.mode == _EXECUTABLE else 0o644
