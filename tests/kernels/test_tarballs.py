"""Tarballs of upstream: which of a directory's files an entry means, and unpacking it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.progress import silent
from kernels.build.availability import survey
from kernels.catalog.catalog import load_catalog
from kernels.catalog.entries import KernelEntry, Source
from kernels.errors import SourceUnavailable, UnknownRevision, UserMistake
from kernels.patches import applying
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store
from tests.kernels.fake_make import ENTRY
from tests.kernels.fake_sources import MTIME, obtained, tarball

FILES = (
    *("linux-6.1.tar.xz", "linux-6.1.9.tar.gz", "linux-6.1.10.tar.xz", "linux-6.10.2.tar.xz"),
    *("linux-6.18-rc7.tar.gz", "linux-6.19-rc1.tar.gz", "linux-6.19-rc10.tar.gz"),
    *("linux-6.18.tar.gz", "patch-6.20.xz", "linux-6.20.tar.sign", "linux-next-7.tar.gz"),
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of tarballs."""
    directory = tmp_path / "tarballs"
    directory.mkdir()
    monkeypatch.setenv("UEVT_TARBALLS", str(directory))
    return directory


@pytest.fixture(autouse=True)
def empty_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel.org without files."""
    monkeypatch.setenv("UEVT_MIRROR", f"file://{tmp_path}/no-mirror")


def of(series: str, revision: str | None = None) -> KernelEntry:
    """ENTRY, from tarballs of a series."""
    return replace(ENTRY, source=Source("tarball", "linux", series=series), revision=revision)


@pytest.mark.parametrize(
    ("series", "revision", "version"),
    [
        ("6.1", None, "6.1.10"),
        ("6.1", "6.1.9", "6.1.9"),
        ("6.1", "6.1", "6.1"),
        ("6.10", None, "6.10.2"),
        ("6.18", None, "6.18"),
        ("6.18", "6.18-rc7", "6.18-rc7"),
        ("newest", None, "6.19-rc10"),
        ("newest", "6.18", "6.18"),
    ],
)
def test_newest_of_a_series_or_the_requested_one(
    store: Store, directory: Path, series: str, revision: str | None, version: str
) -> None:
    for name in FILES:
        (directory / name).touch()
    offer = SourceTrees(store, silent).resolve(of(series, revision))
    assert (offer.package, offer.version) == ("linux", version)


@pytest.mark.parametrize("compression", ["xz", "gz"])
def test_a_tarball_becomes_a_tree(store: Store, directory: Path, compression: str) -> None:
    file = directory / f"linux-5.19.17.tar.{compression}"
    file.write_bytes(tarball("linux-5.19.17", "5.19.17", compression))
    tree = obtained(of("5.19"), store)
    assert tree == store.sources / "linux_5.19.17"
    assert (tree / "Makefile").read_text() == "VERSION = 5.19.17\n"
    assert (tree / "Makefile").stat().st_mtime == MTIME
    assert file.exists()


@pytest.mark.parametrize(
    ("series", "wanted"), [("5.19", r"linux-5\.19\[\.N\]\.tar\.xz"), ("newest", r"linux-\*")]
)
def test_directory_without_the_series_is_an_error(
    store: Store, directory: Path, series: str, wanted: str
) -> None:
    with pytest.raises(SourceUnavailable, match=f"UEVT_TARBALLS={directory} lacks {wanted}"):
        SourceTrees(store, silent).resolve(of(series))


def test_unset_directory_is_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UEVT_TARBALLS", raising=False)
    with pytest.raises(SourceUnavailable, match="UEVT_TARBALLS is not set") as caught:
        SourceTrees(store, silent).resolve(of("5.19"))
    assert "a directory that has linux-5.19[.N].tar.xz" in caught.value.hint


def test_missing_directory_is_an_error_and_not_empty(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt directory must not make a host fetch what it has."""
    monkeypatch.setenv("UEVT_TARBALLS", f"{tmp_path}/tarbals")
    named = f"UEVT_TARBALLS={tmp_path}/tarbals: No such file or directory"
    with pytest.raises(UserMistake, match=named):
        SourceTrees(store, silent).resolve(of("5.19"))
    with pytest.raises(UserMistake, match=named):
        survey([of("5.19")], store)


def test_missing_revision_is_refused(store: Store, directory: Path) -> None:
    (directory / "linux-5.19.17.tar.xz").touch()
    with pytest.raises(UnknownRevision) as caught:
        SourceTrees(store, silent).resolve(of("5.19", "5.19.3"))
    assert "5.19.17" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "compile_test"),
    [("5.18", True), ("6.3", True), ("6.4", False), ("6.18", False), ("mainline", False)],
)
def test_kernels_before_6_4_need_compile_test(name: str, compile_test: bool) -> None:
    entry = load_catalog().find(name)
    assert entry.source.kind == "tarball"
    assert ("CONFIG_COMPILE_TEST=y" in entry.wanted) is compile_test
    assert not entry.default


def test_journal_of_an_earlier_tree_is_removed(store: Store, directory: Path) -> None:
    """A killed build left a journal, and its tree was removed for another tarball."""
    (directory / "linux-6.1.tar.gz").write_bytes(tarball("linux-6.1", "6.1", "gz"))
    wanted, trees = of("6.1"), SourceTrees(store, silent)
    tree = obtained(wanted, store)
    journal = tree.with_name(f"{tree.name}.journal")
    (journal / "originals").mkdir(parents=True)
    (journal / "originals/Makefile").write_text("VERSION = another\n")
    (journal / "journal.json").write_text(
        '{"originals": ["Makefile"], "created": [], "directories": []}'
    )
    shutil.rmtree(tree)
    with applying.applied(wanted.patches, trees.obtain(wanted, trees.resolve(wanted)), store):
        assert (tree / "Makefile").read_text() == "VERSION = 6.1\n"
    assert not journal.exists()
