"""Source packages from the host's lists or private ones, with fake apt programs."""

from __future__ import annotations

import platform

import pytest
from msgspec.structs import replace

from host.progress import Step, silent
from kernels.errors import Killed, SourceUnavailable, StoreFull, UnknownRevision
from kernels.sources import apt_suites
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store
from tests.kernels.fake_make import ENTRY
from tests.kernels.fake_sources import PACKAGE, FakeApt, obtained, tarball
from tests.shell_scripts import write_script


def test_candidate_of_the_hosts_lists_is_used(store: Store, apt: FakeApt) -> None:
    apt.offer("host", "9.9.3-1~deb12u1", "9.9.2-1")
    tree = obtained(ENTRY, store)
    assert tree == store.sources / "linux-source-9.9_9.9.3-1~deb12u1"
    assert (tree / "Makefile").read_text() == "VERSION = 9\n"
    assert apt.diary == [f"{PACKAGE}=9.9.3-1~deb12u1"]
    assert obtained(ENTRY, store) == tree
    assert len(apt.diary) == 1


@pytest.mark.parametrize(
    ("requested", "found"),
    [
        ("9.9.2-1", "9.9.2-1"),
        ("9.9.3-1", "9.9.3-1~deb12u1"),
        ("9.9.3", "9.9.3-1~deb12u1"),
        ("9.9.3-1~deb12u1", "9.9.3-1~deb12u1"),
    ],
)
def test_requested_revision_is_used(store: Store, apt: FakeApt, requested: str, found: str) -> None:
    apt.lists("host", "9.9.31-1", "9.9.3-1~deb12u1", "9.9.2-1")
    chosen = SourceTrees(store, silent).resolve(replace(ENTRY, revision=requested))
    assert chosen.version == found
    assert apt.diary == []


def test_unoffered_revision_is_refused(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1", "9.9.2-1")
    with pytest.raises(UnknownRevision) as caught:
        obtained(replace(ENTRY, revision="9.9.7"), store)
    assert "9.9.3-1, 9.9.2-1" in caught.value.hint
    assert apt.diary == ["update"]


def test_full_disk_is_no_missing_offer(
    store: Store, apt: FakeApt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "_free_mib", lambda _: 199)
    with pytest.raises(StoreFull, match="no space for the package lists"):
        SourceTrees(store, silent).resolve(ENTRY)
    assert apt.diary == ["update"]


def test_absent_lists_are_replaced_by_private_ones(store: Store, apt: FakeApt) -> None:
    apt.offer("upstream", "9.9.4-1")
    assert obtained(ENTRY, store).name == "linux-source-9.9_9.9.4-1"
    assert apt.diary == ["update", f"{PACKAGE}=9.9.4-1"]
    options = (apt.directory / "diary").read_text()
    assert f"-oDir::State={store.apt}" in options
    assert f"-oDir::Cache={store.apt}/cache" in options


def test_suite_is_queried_in_the_hosts_archive(
    store: Store, apt: FakeApt, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = apt.directory / "debian.sources"
    sources.write_text("Types: deb\nURIs: http://m.example\nSuites: bookworm\nComponents: main\n")
    monkeypatch.setattr(apt_suites, "_files", lambda: [sources])
    release = {"VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    apt.offer("upstream", "9.9.4-1~bpo1")
    source = replace(ENTRY.source, suite="other-backports")
    assert obtained(replace(ENTRY, source=source), store).name == "linux-source-9.9_9.9.4-1~bpo1"
    state = store.apt / "suites/other-backports"
    assert "suites: other-backports\n" in apt_suites.path(state).read_text()
    output = (apt.directory / "diary").read_text().splitlines()
    assert len(output) == 2
    for line in output:
        assert f"-oDir::State={state} " in line
        assert f"-oDir::Etc::sourcelist={apt_suites.path(state)} " in line
        assert "-oDir::Etc::sourceparts=- " in line


def test_configured_suite_is_not_queried(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1")
    source = replace(ENTRY.source, suite="other-backports")
    offer = SourceTrees(store, silent).resolve(replace(ENTRY, source=source))
    assert offer.version == "9.9.3-1"
    assert apt.diary == []


def test_stale_lists_are_fetched_again(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1")
    apt.lists("upstream", "9.9.4-1", "9.9.3-1")
    with pytest.raises(SourceUnavailable) as caught:
        obtained(ENTRY, store)
    assert "404  Not Found" in str(caught.value)
    assert apt.diary == [f"{PACKAGE}=9.9.3-1", "update", f"{PACKAGE}=9.9.3-1"]


@pytest.mark.parametrize("status", ["", "Status: installed\nVersion: 9.9.1\n"])
def test_unoffered_package_is_unavailable(store: Store, apt: FakeApt, status: str) -> None:
    if status:
        (apt.directory / "host").write_text(f"Package: {PACKAGE}\n{status}")
    with pytest.raises(SourceUnavailable, match=r"do not offer linux-source-9\.9"):
        obtained(ENTRY, store)
    assert apt.diary == ["update"]


def test_broken_archive_leaves_no_tree(store: Store, apt: FakeApt) -> None:
    apt.offer("host", "9.9.3-1")
    (apt.directory / "source.tar.xz").write_bytes(b"torn")
    with pytest.raises(SourceUnavailable, match=r"unpacking linux-source-9\.9"):
        obtained(ENTRY, store)
    assert list(store.sources.iterdir()) == []
    assert list((store.root / "work").iterdir()) == []


def test_space_is_checked_before_the_download(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1")
    huge = replace(ENTRY, needs=replace(ENTRY.needs, tree_mib=10**9))
    with pytest.raises(StoreFull, match=r"unpacking linux-source-9\.9 9\.9\.3-1"):
        obtained(huge, store)
    assert apt.diary == []


def test_every_step_is_reported(store: Store, apt: FakeApt) -> None:
    apt.offer("upstream", "9.9.4-1")
    steps: list[Step] = []
    obtained(ENTRY, store, steps)
    phases = list(dict.fromkeys(step.phase for step in steps))
    assert phases == [
        "asking the package sources about linux-source-9.9",
        "fetching linux-source-9.9 9.9.4-1 (1 MiB)",
        "unpacking linux-source-9.9 9.9.4-1",
    ]


@pytest.mark.parametrize("compression", ["xz", "bz2", "gz"])
def test_tarball_in_a_directory_of_the_package(
    store: Store, apt: FakeApt, compression: str
) -> None:
    """As on Ubuntu: the tarball is deeper, with a link where Debian has it."""
    listing = f"/usr/src/{PACKAGE}/{PACKAGE}.tar.{compression}"
    (apt.directory / "source").write_bytes(tarball(PACKAGE, "9", compression))
    write_script(
        apt.directory / "dpkg-deb",
        f'mkdir -p "$3/usr/src/{PACKAGE}/debian"\ncp {apt.directory}/source "$3{listing}"\n'
        f'ln -s {PACKAGE}/{PACKAGE}.tar.{compression} "$3/usr/src/{PACKAGE}.tar.{compression}"',
    )
    apt.offer("host", "9.9.3-1")
    assert (obtained(ENTRY, store) / "Makefile").read_text() == "VERSION = 9\n"


def test_killed_program_is_not_blamed_on_the_package(store: Store, apt: FakeApt) -> None:
    write_script(apt.directory / "dpkg-deb", "kill -KILL $$")
    apt.offer("host", "9.9.3-1")
    with pytest.raises(Killed, match=r"unpacking linux-source-9\.9 9\.9\.3-1 was interrupted"):
        obtained(ENTRY, store)


def test_package_without_a_tarball_is_refused(store: Store, apt: FakeApt) -> None:
    write_script(apt.directory / "dpkg-deb", 'mkdir -p "$3/usr/src"')
    apt.offer("host", "9.9.3-1")
    with pytest.raises(SourceUnavailable, match=f"package {PACKAGE} has no {PACKAGE}"):
        obtained(ENTRY, store)
