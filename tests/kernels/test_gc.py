"""Garbage collection: what is removed, in which order, and what always stays."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.cli.kernels import size
from host.progress import silent
from kernels.build.build import ensure
from kernels.build.gc import GRACE_S, Bound, Item, _companions, collect, survey, usage
from kernels.build.out_of_tree_modules import ensure_module
from kernels.errors import StoreBusy
from kernels.store.store import Store
from tests.conftest import Uevt
from tests.kernels.fake_make import ENTRY, FakeMake, write_module
from vm.qemu.root_archive import interpreter, root_archive

DAY = 24 * 3600.0
MINE = replace(ENTRY, label="+mine", wanted=("CONFIG_C=y",))


@pytest.fixture
def filled(store: Store, make: FakeMake) -> Store:
    """A store with a kernel in use, and one that a user requested; everything is two days old."""
    ensure(ENTRY, store)
    ensure(MINE, store)
    age(store, 2 * DAY)
    return store


def age(store: Store, seconds: float) -> None:
    """Age everything in the store."""
    then = time.time() - seconds
    for item in survey(store, ()):
        for path in (item.path, *_companions(item.kind, item.path, store)):
            os.utime(path, (then, then))


def kinds(items: tuple[Item, ...]) -> list[str]:
    """The items, by kind and name without revision."""
    return sorted(f"{item.kind} {item.name.split()[0]}" for item in items if item.kind != "log")


def test_items_of_kernels_in_use_stay(filled: Store) -> None:
    done = collect(filled, [ENTRY], Bound(keep=0))
    assert kinds(done.gone) == ["kernel 9.9+mine", "objects 9.9+mine"]
    assert kinds(done.stays) == ["kernel 9.9", "objects 9.9", "source linux-source-9.9_9.9.3-1"]
    assert all(item.needed for item in done.stays)
    assert filled.lookup(ENTRY) is not None
    assert [file.stem for file in (filled.root / "names").iterdir()] == ["9.9"]
    assert not any((filled.root / "work").iterdir())


def test_all_removes_everything(filled: Store) -> None:
    collect(filled, [ENTRY], Bound(keep=0, every=True))
    assert survey(filled, [ENTRY]) == ()
    assert filled.lookup(ENTRY) is None
    # A resolved revision stays resolved.
    assert filled.remembered_revision(ENTRY) == "9.9.3-1"


def test_least_recently_used_goes_first(filled: Store) -> None:
    mine = next(item for item in survey(filled, ()) if item.name == "9.9+mine")
    others = [item for item in survey(filled, ()) if item.path != mine.path]
    for item in others:
        os.utime(item.path, (time.time() - DAY, time.time() - DAY))
    done = collect(filled, (), Bound(keep=sum(item.size for item in others)))
    assert [item.path for item in done.gone] == [mine.path]
    assert done.freed == mine.size
    assert done.kept == sum(item.size for item in others)


def test_recently_used_items_stay(filled: Store) -> None:
    assert collect(filled, (), Bound(since=time.time() - 3 * DAY)).gone == ()
    assert len(collect(filled, (), Bound(since=time.time() - DAY)).gone) > 4


def test_run_stamps_what_it_uses(filled: Store) -> None:
    kernel = ensure(MINE, filled)
    done = collect(filled, [ENTRY], Bound(keep=0))
    assert kinds(done.gone) == ["objects 9.9+mine"]
    assert kernel.image.is_file()
    # A guest may still be rebooted from it.
    assert collect(filled, (), Bound(keep=0, every=True), now=time.time()).stays != ()
    assert GRACE_S >= 3600


def test_what_a_run_holds_stays_while_it_runs(filled: Store) -> None:
    """A run may last for longer than the time for which a stamp protects."""
    kernel = filled.lookup(MINE)
    assert kernel is not None
    ours, theirs = Pipe()
    run = get_context("spawn").Process(
        target=hold, args=(filled.root, kernel.image.parent, theirs), daemon=True
    )
    run.start()
    assert ours.poll(30)
    collect(filled, (), Bound(keep=0, every=True))
    assert kernel.image.is_file()
    ours.send("end")
    run.join(30)
    collect(filled, (), Bound(keep=0, every=True))
    assert not kernel.image.exists()


def test_nothing_is_found_while_it_is_deleted(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run could begin with a kernel that is chosen, while others are deleted."""
    found = []
    delete = shutil.rmtree

    def rmtree(directory: Path, **options: Any) -> None:
        found.append(survey(filled, ()))
        delete(directory, **options)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    collect(filled, (), Bound(keep=0, every=True))
    assert found
    assert set(found) == {()}


def test_file_system_that_refuses_a_lock(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = fcntl.flock

    def flock(descriptor: int, kind: int) -> None:
        """As on NFS, where those of directories are local."""
        file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if file and kind & fcntl.LOCK_EX and mode == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        locked(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    collect(filled, (), Bound(keep=0, every=True))
    assert survey(filled, ()) == ()


def hold(root: Path, path: Path, pipe: Connection) -> None:
    """Main function of a child process."""
    Store(root).hold(path)
    pipe.send("held")
    pipe.recv()


def test_dry_run_changes_nothing(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it take a lock."""
    before = sorted(filled.root.rglob("*"))
    monkeypatch.setattr(filled, "locked", None)
    assert collect(filled, (), Bound(keep=0), dry_run=True).freed > 0
    assert sorted(filled.root.rglob("*")) == before


def test_nothing_is_removed_during_a_build(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.build.gc._WAIT_S", 0.1)
    other = Store(filled.root)
    with other.locked("building 9.9", silent), pytest.raises(StoreBusy, match=r"building 9\.9"):
        collect(filled, (), Bound(keep=0))
    assert filled.lookup(ENTRY) is not None


def test_killed_collector_leaves_whole_items(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("kernels.build.gc.Store.workspace", _abandoned)
        collect(filled, (), Bound(keep=0))
    # Moved out of its place, but not removed yet.
    assert not any((filled.root / "kernels").iterdir())
    assert any((filled.root / "work").iterdir())
    collect(filled, (), Bound(keep=0))
    assert not any((filled.root / "work").iterdir())


@contextmanager
def _abandoned(store: Store) -> Iterator[Path]:
    """A workspace whose owner is killed before it is swept."""
    directory = store.root / "work" / f"uevt-scratch-{time.monotonic_ns()}"
    directory.mkdir(parents=True)
    yield directory


def test_last_build_of_a_module_stays(filled: Store, make: FakeMake, tmp_path: Path) -> None:
    for text in ("int one;\n", "int two;\n"):
        last = ensure_module(ENTRY, write_module(tmp_path / "probe", text), filled)
        age(filled, DAY)
        os.utime(last.parent)
    age_of_last = last.parent.stat().st_mtime
    os.utime(last.parent, (age_of_last - 7200, age_of_last - 7200))
    done = collect(filled, [ENTRY], Bound(keep=0))
    assert [item.kind for item in done.gone].count("module") == 1
    assert last.is_file()


def test_journal_goes_with_its_tree(filled: Store) -> None:
    (tree,) = filled.sources.iterdir()
    journal = tree.with_name(f"{tree.name}.journal")
    journal.mkdir()
    for path in (tree, journal):
        os.utime(path, (0, 0))
    collect(filled, (), Bound(since=1))
    assert list(filled.sources.iterdir()) == []


def test_items_of_guests_and_downloads_go(store: Store) -> None:
    """Trees, downloads, and files of guests that are recreated on demand."""
    wanted = {
        "tree": ["trees/tree-linux-12345678/index"],
        "download": ["downloads/linux-6.18.tar.xz.part", "downloads/linux-6.18.tar.xz.part.json"],
        "given": ["given/abc/pipe"],
        "initramfs": ["initramfs/abc.cpio"],
        "root": ["roots/abc.cpio", "roots/abc.json"],
        "snapshot": ["snapshots/abc/state", "snapshots/abc.lock"],
        "durations": ["durations/6.12.json"],
    }
    for name in (name for names in wanted.values() for name in names):
        (store.root / name).parent.mkdir(parents=True, exist_ok=True)
        (store.root / name).write_bytes(b"x" * 5000)
    assert sorted(item.kind for item in survey(store, ())) == sorted(wanted)
    # It may be in use.
    assert collect(store, (), Bound(keep=0)).gone == ()
    age(store, DAY)
    assert len(collect(store, (), Bound(keep=0)).gone) == len(wanted)
    left = [path for path in store.root.rglob("*") if path.is_file()]
    assert {path.name for path in left} <= {"lock"}


def test_root_in_use_stays(store: Store) -> None:
    """A run stamps only its file list."""
    archive = root_archive(interpreter(), store.root)
    age(store, DAY)
    before = archive.stat()
    assert root_archive(interpreter(), store.root) == archive
    assert collect(store, (), Bound(keep=0, every=True)).gone == ()
    # The digest of the archive is cached by its times.
    assert archive.stat() == before


def test_name_of_a_tree_goes_with_its_kernel(filled: Store) -> None:
    tree = replace(ENTRY, name="tree-9.9")
    record = (filled.root / "names" / "9.9+mine.json").read_bytes()
    (filled.root / "names" / f"{tree.kernel_id}.json").write_bytes(record)
    collect(filled, [ENTRY], Bound(keep=0))
    assert [file.stem for file in (filled.root / "names").iterdir()] == ["9.9"]


def test_usage_counts_readable_disk_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("readable", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/")
    scan = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "theirs":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert 100_000 <= usage(tmp_path) < 200_000
    assert usage(tmp_path / "absent") == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10G", 10 << 30), ("1.5M", 3 << 19), ("800MiB", 800 << 20), ("4096", 4096), ("1k", 1024)],
)
def test_sizes_with_units(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "G", "ten", "-1G", "10X"])
def test_malformed_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        size(text)


def test_command_prints_what_would_go(
    filled: Store, monkeypatch: pytest.MonkeyPatch, uevt: Uevt
) -> None:
    monkeypatch.setenv("UEVT_CACHE", str(filled.root))
    text = uevt("kernels", "gc", "--keep", "0", "--dry-run").out
    assert "9.9+mine" in text
    assert "would be removed" in text.splitlines()[-1]
    age(filled, 0)
    last = uevt("kernels", "gc", "--keep", "0", "--dry-run").out.splitlines()[-1]
    assert re.search(
        r": more than --keep, since \d+ KiB are in use, or were in the last hour$", last
    )
    age(filled, 2 * DAY)
    output = json.loads(uevt("kernels", "gc", "--older", "1", "--json").out)
    assert output["freed"] == sum(item["bytes"] for item in output["gone"]) > 0
    assert output["kept"] == 0
