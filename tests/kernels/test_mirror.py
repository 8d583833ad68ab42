"""Tarballs of a mirror: offers, interrupted transfers, wrong digests, signatures."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.deadline import Deadline
from host.progress import Step, silent
from kernels.build.availability import State, survey
from kernels.catalog.entries import Source
from kernels.errors import SourceUnavailable, UnknownRevision
from kernels.sources import download
from kernels.sources.download import Broken, Download, NotThere
from kernels.sources.mirror import AUTOSIGNER
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store
from tests.kernels.fake_make import ENTRY
from tests.kernels.fake_sources import obtained, tarball
from tests.kernels.mirror_server import LIST, Mirror, serving
from tests.shell_scripts import write_script

NAME = "linux-5.19.2.tar.xz"
OF_SERIES = replace(ENTRY, source=Source("tarball", "linux", series="5.19"))
CONTENT = os.urandom(100_000)
# The fingerprint of a key that is not kernel.org's.
OTHER = "A" * 40
VALID = "VALIDSIG 00{key} 2026 0 0 4 0 1 8 01 {key}"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror on this host, and no directory of tarballs."""
    monkeypatch.delenv("UEVT_TARBALLS", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as mirror:
        monkeypatch.setenv("UEVT_MIRROR", f"{mirror.base}/")
        yield mirror


@pytest.fixture
def gpg(programs: Path) -> Path:
    """The status that a fake gpg prints; it takes the second line of its input as signed."""
    options = 'while test $# -gt 1; do test "$1" = --output && out=$2; shift; done'
    write_script(programs / "gpg", f'{options}\nsed -n 2p "$1" > "$out"; cat {programs}/status')
    return programs / "status"


def add(mirror: Mirror, *versions: str, **others: str) -> None:
    """Let the mirror have source trees that are too large for one packet."""
    for version in versions:
        packed = tarball(f"linux-{version}", version, padding=os.urandom(50_000))
        mirror.add(f"linux-{version}.tar.xz", packed, **others)


def fetching(mirror: Mirror, directory: Path, *, silence_s: float = 10) -> Download:
    """The download of NAME."""
    deadline = Deadline(60, "a test")
    return Download(f"{mirror.base}/v5.x/{NAME}", directory / NAME, deadline, silent, silence_s)


def test_newest_of_a_series_is_fetched_and_unpacked(store: Store, mirror: Mirror) -> None:
    add(mirror, "5.19.9", "5.19.17", "5.18.3")
    mirror.add("linux-5.19.18.tar.gz", b"the same as xz has, if it were there")
    tree = obtained(OF_SERIES, store)
    assert tree == store.sources / "linux_5.19.17"
    assert (tree / "Makefile").read_bytes().startswith(b"VERSION = 5.19.17\n")
    assert [path for path, _ in mirror.requests] == [LIST, "/v5.x/linux-5.19.17.tar.xz"]
    assert list(store.downloads.iterdir()) == []
    assert list((store.root / "work").iterdir()) == []


def test_requested_revision_is_found_on_the_mirror(store: Store, mirror: Mirror) -> None:
    add(mirror, "5.19.9", "5.19.17")
    trees = SourceTrees(store, silent)
    with store.locked("a test", silent):
        assert trees.resolve(replace(OF_SERIES, revision="5.19.9")).version == "5.19.9"
        with pytest.raises(UnknownRevision, match=r"5\.19\.8"):
            trees.resolve(replace(OF_SERIES, revision="5.19.8"))


def test_tarball_of_the_directory_is_preferred(
    store: Store, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.add(NAME, b"")
    (tmp_path / "linux-5.19.1.tar.gz").touch()
    monkeypatch.setenv("UEVT_TARBALLS", str(tmp_path))
    assert SourceTrees(store, silent).resolve(OF_SERIES).version == "5.19.1"
    assert mirror.requests == []


def test_newest_release_is_searched_in_newer_directories(store: Store, mirror: Mirror) -> None:
    newest = replace(ENTRY, source=Source("tarball", "linux", series="newest"))
    for major, version in (("7", "7.4.1"), ("8", "8.0")):
        line = f"{'0' * 64}  linux-{version}.tar.xz\n"
        mirror.files[f"/v{major}.x/sha256sums.asc"] = line.encode()
    with store.locked("a test", silent):
        assert SourceTrees(store, silent).resolve(newest).version == "8.0"


def test_interrupted_download_resumes_in_the_same_run(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(NAME, CONTENT)
    mirror.breaks = [30_000]
    assert fetching(mirror, tmp_path).run().read_bytes() == CONTENT
    assert mirror.ranges == [None, "bytes=30000-"]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_interrupted_download_resumes_in_the_next_run(store: Store, mirror: Mirror) -> None:
    add(mirror, "5.19.2")
    mirror.breaks = [10_000, 0]
    with pytest.raises(SourceUnavailable, match=f"fetching .*{NAME} failed: it ended") as caught:
        obtained(OF_SERIES, store)
    assert "the download resumes" in caught.value.hint
    assert (store.downloads / f"{NAME}.part").stat().st_size == 10_000
    assert obtained(OF_SERIES, store).is_dir()
    assert mirror.ranges == [None, "bytes=10000-", "bytes=10000-"]
    assert list(store.downloads.iterdir()) == []


@pytest.mark.parametrize("damage", ["another version", "longer than the file"])
def test_unusable_part_is_not_resumed(mirror: Mirror, tmp_path: Path, damage: str) -> None:
    mirror.add(NAME, CONTENT)
    mirror.breaks = [30_000, 0]
    with pytest.raises(Broken):
        fetching(mirror, tmp_path).run()
    content = CONTENT
    if damage == "another version":
        content = mirror.files[f"/v5.x/{NAME}"] = CONTENT[::-1]
    else:
        with fetching(mirror, tmp_path).part.open("ab") as file:
            file.write(CONTENT)
    assert fetching(mirror, tmp_path).run().read_bytes() == content


def test_silent_server_times_out(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(NAME, CONTENT)
    mirror.breaks, mirror.stalls = [30_000, 30_000], True
    before = time.monotonic()
    with pytest.raises(Broken, match="nothing came for 0 s"):
        fetching(mirror, tmp_path, silence_s=0.3).run()
    assert time.monotonic() - before < 10
    assert fetching(mirror, tmp_path).part.stat().st_size == 30_000


def test_wrong_digest_is_refused_and_the_file_removed(store: Store, mirror: Mirror) -> None:
    add(mirror, "5.19.2", digest="ab" * 32)
    with pytest.raises(SourceUnavailable, match=f"{NAME} has sha256 .* has abab"):
        obtained(OF_SERIES, store)
    assert list(store.downloads.iterdir()) == []
    assert not (store.sources / "linux_5.19.2").exists()


def test_directory_as_a_mirror(
    store: Store, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(mirror, "5.19.2")
    for path, content in mirror.files.items():
        file = tmp_path / "copy" / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    monkeypatch.setenv("UEVT_MIRROR", f"file://{tmp_path}/copy")
    assert obtained(OF_SERIES, store).is_dir()
    assert (tmp_path / "copy/v5.x" / NAME).exists()
    other = replace(OF_SERIES, source=Source("tarball", "linux", series="4.19"))
    with pytest.raises(SourceUnavailable, match=r"no linux-4\.19\[\.N\]\.tar\.xz .*, nor has file"):
        obtained(other, store)


@pytest.mark.parametrize(
    ("address", "why"), [("http://127.0.0.1:1", "C"), ("nonsense", "unknown url type")]
)
def test_mirror_that_does_not_answer_is_an_error(
    store: Store, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    monkeypatch.setenv("UEVT_MIRROR", address)
    with pytest.raises(SourceUnavailable, match=f"{re.escape(address)} does not answer: {why}"):
        obtained(OF_SERIES, store)


def test_missing_file_is_not_there(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="404"):
        fetching(mirror, tmp_path).run()
    assert list(tmp_path.iterdir()) == []


def test_list_of_kernels_queries_no_mirror(store: Store, mirror: Mirror) -> None:
    (found,) = survey([OF_SERIES], store)
    assert found.state is State.FETCHABLE
    assert str(found) == (
        "has to be fetched: no linux-5.19[.N].tar.xz is on this host (UEVT_TARBALLS is not set);"
        f" uevt kernels build 9.9 queries {mirror.base}"
    )
    assert mirror.requests == []


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("NO_PUBKEY 632D3A06589DA6B1", "your keyring lacks"),
        (VALID.format(key=OTHER), f"signed by {OTHER}"),
    ],
)
def test_signature_is_unchecked_without_the_key(
    store: Store, mirror: Mirror, gpg: Path, status: str, why: str
) -> None:
    gpg.write_text(f"[GNUPG:] {status}\n")
    add(mirror, "5.19.2")
    steps: list[Step] = []
    assert obtained(OF_SERIES, store, steps).is_dir()
    assert any(f"signature not checked ({why}" in str(step) for step in steps)


def test_unsigned_lines_are_ignored(store: Store, mirror: Mirror, gpg: Path) -> None:
    gpg.write_text(f"[GNUPG:] {VALID.format(key=AUTOSIGNER)}\n")
    mirror.add("linux-5.19.3.tar.xz", b"slipped in before what is signed")
    add(mirror, "5.19.2")
    steps: list[Step] = []
    assert obtained(OF_SERIES, store, steps) == store.sources / "linux_5.19.2"
    assert not any("signature" in str(step) for step in steps)


def test_a_bad_signature_is_refused(store: Store, mirror: Mirror, gpg: Path) -> None:
    gpg.write_text("[GNUPG:] BADSIG 632D3A06589DA6B1 Kernel.org checksum autosigner\n")
    add(mirror, "5.19.2")
    with pytest.raises(SourceUnavailable, match=r"v5\.x/sha256sums\.asc has a bad signature"):
        obtained(OF_SERIES, store)


def test_transfer_without_progress_is_not_repeated(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(NAME, CONTENT)
    mirror.breaks = [0] * download.ATTEMPTS
    with pytest.raises(Broken):
        fetching(mirror, tmp_path).run()
    assert len(mirror.ranges) == 1
