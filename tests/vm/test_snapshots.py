"""Snapshots on disk: complete or absent, saved once, least recently used removed first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from vm.qemu.accelerator import Accelerator, Verdict
from vm.qemu.command_line import Export, MachineSpec
from vm.snapshots.files import RECORD, STATE, Snapshots, snapshot_key

INFO = {"boot_id": "one", "release": "6.12"}


def _make(snapshots: Snapshots, key: str, content: bytes = b"state") -> None:
    with snapshots.claimed(key) as scratch:
        assert scratch is not None
        (scratch / STATE).write_bytes(content)
        snapshots.publish(key, scratch, {"info": INFO, "actors": [], "opening": []})


def _intact(snapshots: Snapshots, key: str) -> bool:
    found = snapshots.find(key)
    assert found is not None
    descriptor = os.open(found.state, os.O_RDONLY)
    try:
        return found.intact(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path)


def test_publish_and_find(snapshots: Snapshots) -> None:
    assert snapshots.find("key") is None
    _make(snapshots, "key")
    found = snapshots.find("key")
    assert found is not None
    assert (found.info, found.size) == (INFO, 5)
    assert _intact(snapshots, "key")
    assert snapshots.find("other") is None
    with snapshots.claimed("key") as scratch:
        assert scratch is None, "it would be saved again"


def directories(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_dir())


def test_only_one_process_saves(tmp_path: Path) -> None:
    with Snapshots(tmp_path).claimed("key") as first, Snapshots(tmp_path).claimed("key") as second:
        assert first is not None
        assert second is None
    assert not list(tmp_path.glob("*/"))


def test_claim_removes_leftovers_of_killed_processes(snapshots: Snapshots, tmp_path: Path) -> None:
    (tmp_path / "uevt-scratch-abc").mkdir()
    (tmp_path / "uevt-scratch-abc" / STATE).write_bytes(b"half")
    assert snapshots.find("key") is None
    _make(snapshots, "key")
    assert directories(tmp_path) == ["key"]


def test_clean_up(snapshots: Snapshots, tmp_path: Path) -> None:
    """The directory of a running process stays."""
    _make(snapshots, "kept")
    (tmp_path / "uevt-scratch-gone").mkdir()
    (tmp_path / "gone.lock").touch()
    with Snapshots(tmp_path).claimed("busy") as scratch:
        assert scratch is not None
        snapshots.clean_up()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"kept", "kept.lock", scratch.name, "busy.lock"}
    snapshots.clean_up()
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "kept.lock"}
    Snapshots(tmp_path / "absent").clean_up()


@pytest.mark.parametrize(
    ("file", "content"),
    [(STATE, "sta"), *((RECORD, text) for text in ("", "{}", "[]", '{"schema": 99}', "\0"))],
)
def test_damaged_snapshot_is_saved_again(
    snapshots: Snapshots, tmp_path: Path, file: str, content: str
) -> None:
    _make(snapshots, "key")
    (tmp_path / "key" / file).write_text(content)
    assert snapshots.find("key") is None
    _make(snapshots, "key", b"again")
    assert _intact(snapshots, "key")


def test_digest_is_cached_until_the_file_changes(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file modified a moment ago is read again, because its mtime may not change."""
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        read.append(offset)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    _make(snapshots, "key")
    read.clear()
    snapshots.verify("key")
    snapshots.verify("other")
    before = len(read)
    assert _intact(snapshots, "key")
    assert len(read) == 2 * before
    monkeypatch.setattr("vm.snapshots.files._MTIME_RESOLUTION", -1_000_000_000)
    snapshots.verify("key")
    seen = len(read)
    assert _intact(snapshots, "key")
    assert len(read) == seen
    (tmp_path / "key" / STATE).write_bytes(b"stale")
    # Some kernels have a coarse mtime.
    os.utime(tmp_path / "key" / STATE, ns=(0, 0))
    assert not _intact(snapshots, "key")


def test_renamed_snapshot_is_not_used(snapshots: Snapshots, tmp_path: Path) -> None:
    """A renamed directory is complete, but its key does not match."""
    _make(snapshots, "key")
    (tmp_path / "key").rename(tmp_path / "other")
    assert snapshots.find("other") is None
    _make(snapshots, "other")
    assert _intact(snapshots, "other")


def test_least_recently_used_is_removed_first(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, limit=12)
    for age, key in enumerate(("c", "b", "a")):
        _make(snapshots, key)
        os.utime(tmp_path / key, (1000 - age, 1000 - age))
    assert snapshots.find("a") is not None  # now the most recently used
    _make(snapshots, "d")
    assert directories(tmp_path) == ["a", "d"]


def test_unused_locks_are_removed(snapshots: Snapshots, tmp_path: Path) -> None:
    """A lock that is held stays."""
    for key in ("a", "b"):
        _make(snapshots, key)
    snapshots.discard("a")
    with snapshots.claimed("c") as scratch:
        assert scratch is not None
        _make(snapshots, "d")
        assert sorted(path.stem for path in tmp_path.glob("*.lock")) == ["b", "c", "d"]
        with Snapshots(tmp_path).claimed("c") as second:
            assert second is None


@pytest.fixture
def spec(tmp_path: Path) -> MachineSpec:
    for name in ("bzImage", "root", "qemu"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "qemu").chmod(0o755)
    qemu = tmp_path / "qemu"
    return MachineSpec(tmp_path / "bzImage", qemu=qemu, root=tmp_path / "root", actors=1)


@pytest.mark.parametrize("changed", ["bzImage", "root", "qemu"])
def test_key_changes_with_every_file(spec: MachineSpec, changed: str) -> None:
    """The mtime of the kernel does not matter."""
    key = snapshot_key(spec)
    spec.kernel.touch()
    assert snapshot_key(spec) == key
    spec.kernel.with_name(changed).write_text("#!/bin/sh\n# another\n")
    assert snapshot_key(spec) != key


def test_key_ignores_where_exports_and_gdb_are(spec: MachineSpec) -> None:
    def key(path: str, tag: str = "host", gdb: Path | None = None) -> str:
        return snapshot_key(replace(spec, exports=(Export(tag, Path(path)),), gdb=gdb))

    assert key("/a") == key("/b") == key("/a", gdb=Path("/gdb"))
    assert key("/a") != key("/a", tag="other")
    assert key("/a") != snapshot_key(spec)


def test_key_changes_with_the_machine(spec: MachineSpec) -> None:
    kvm = Accelerator("kvm", "q35,accel=kvm", "host", 1.0, Verdict.WORKS, "")
    others = [
        replace(spec, memory_mib=1024),
        replace(spec, cpus=2),
        replace(spec, actors=2),
        replace(spec, append=("nokaslr",)),
        replace(spec, accelerator=kvm),
    ]
    keys = {snapshot_key(each) for each in (spec, *others)}
    assert len(keys) == 1 + len(others)
