"""`uevt kernels list`: what is built, what can be built, and what prevents the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.cli import kernels
from host import packages
from host.text import WIDTH
from kernels.build import build
from kernels.build.availability import Availability, State, survey
from kernels.catalog.catalog import VARIANTS, Catalog, load_catalog
from kernels.catalog.entries import KernelEntry, Source
from kernels.catalog.patch import Patch
from kernels.errors import SourceUnavailable
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.conftest import Uevt
from tests.kernels.conftest import run_measured
from tests.kernels.fake_make import ENTRY, publish
from tests.kernels.fake_sources import FakeApt

OF_SUITE = replace(ENTRY, source=replace(ENTRY.source, suite="other-backports"))
OF_SERIES = replace(ENTRY, source=Source("tarball", "linux", series="5.19"))


def only(entry: KernelEntry, store: Store) -> Availability:
    """The availability of one kernel."""
    (found,) = survey([entry], store)
    assert found.entry == entry
    return found


def packaged(package: str, **others: Any) -> KernelEntry:
    """ENTRY from another package."""
    return replace(ENTRY, source=Source("debian-source", package), **others)


def test_built_kernel(store: Store, apt: FakeApt, tmp_path: Path) -> None:
    publish(store, tmp_path)
    found = only(ENTRY, store)
    assert (found.state, str(found)) == (State.BUILT, "built, 9.9.3-test (9.9.3-1)")
    assert apt.queries == []


def test_offered_by_the_hosts_lists(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1")
    assert str(only(ENTRY, store)) == "can be built"
    assert only(replace(ENTRY, revision="9.9.3"), store).state is State.BUILDABLE
    other = only(replace(ENTRY, revision="9.9.4"), store)
    assert other.state is State.UNBUILDABLE
    assert "are: 9.9.3-1" in str(other)


def test_kernel_that_no_list_offers(store: Store, apt: FakeApt) -> None:
    assert str(only(ENTRY, store)) == (
        "cannot be built here: linux-source-9.9 is not in this host's package lists;"
        " uevt kernels build 9.9 updates them"
    )


def test_offered_by_the_private_lists_of_its_suite(store: Store, apt: FakeApt) -> None:
    apt.lists("private", "9.9.3-1~bpo1")
    before = only(OF_SUITE, store)
    assert before.state is State.UNBUILDABLE
    assert "linux-source-9.9 in other-backports is not in" in str(before)
    (store.apt / "suites/other-backports/lists").mkdir(parents=True)
    assert only(OF_SUITE, store).state is State.BUILDABLE


def test_tree_of_the_known_revision_is_enough(store: Store, apt: FakeApt, tmp_path: Path) -> None:
    publish(store, tmp_path)
    (store.sources / "linux-source-9.9_9.9.3-1").mkdir(parents=True)
    assert only(replace(ENTRY, wanted=("CONFIG_C=y",)), store).state is State.BUILDABLE
    assert apt.queries == []


def test_missing_tools_are_named(
    store: Store, apt: FakeApt, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt.lists("host", "9.9.3-1")
    absent = {"patch", "bison"}
    monkeypatch.setattr(packages, "missing", lambda names: tuple(sorted(absent & set(names))))
    changed = replace(ENTRY, patches=(Patch("fix", "text"),))
    output = str(only(changed, store))
    assert output.startswith("cannot be built here: missing on this host: bison, patch; install")
    absent.remove("bison")
    assert only(changed, store).state is State.UNBUILDABLE
    assert only(ENTRY, store).state is State.BUILDABLE


@pytest.mark.usefixtures("bare_host")
def test_host_without_apt_runs_no_program(store: Store) -> None:
    assert str(only(ENTRY, store)) == (
        "cannot be built here: linux-source-9.9 is a Debian package, but this host"
        " has no apt; test a built image (--image), or a release from a tarball"
        " (UEVT_TARBALLS)"
    )
    with pytest.raises(SourceUnavailable, match="this host has no apt"):
        build.ensure(ENTRY, store)
    assert "missing on this host: bc, bison, flex, gcc" in str(only(OF_SERIES, store))


UBUNTU = """\
Package: linux-source
Version: 6.8.0-31.31
Depends: linux-source-6.8.0
Size: 1686

Package: linux-source-6.8.0
Version: 6.8.0-31.31
Provides: linux-source
Size: 232893746
"""


def test_lists_of_ubuntu_offer_no_kernel_of_the_catalog(store: Store, apt: FakeApt) -> None:
    """Ubuntu's packages have three numbers in their names; one without a number depends on them."""
    (apt.directory / "host").write_text(UBUNTU)
    for name in ("linux-source-6.12", "linux-source-6.8"):
        found = str(only(packaged(name), store))
        assert f"{name} is not in this host's package lists" in found
    own = packaged("linux-source-6.8.0")
    assert only(own, store).state is State.BUILDABLE
    assert only(replace(own, revision="6.8.0-31.31"), store).state is State.BUILDABLE


def test_kernels_from_tarballs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UEVT_TARBALLS", raising=False)
    assert "UEVT_TARBALLS is not set" in str(only(OF_SERIES, store))
    monkeypatch.setenv("UEVT_TARBALLS", str(tmp_path))
    assert f"UEVT_TARBALLS={tmp_path} lacks linux-5.19[.N].tar.xz" in str(only(OF_SERIES, store))
    (tmp_path / "linux-5.19.17.tar.gz").touch()
    assert only(OF_SERIES, store).state is State.BUILDABLE


def test_one_query_serves_all_kernels(store: Store, apt: FakeApt) -> None:
    apt.lists("host", "9.9.3-1")
    other = packaged("linux-source-9.8", name="9.8")
    found = survey([other, ENTRY, replace(ENTRY, name="9.9-x")], store)
    assert [one.state for one in found] == [State.UNBUILDABLE, *[State.BUILDABLE] * 2]
    assert [line.split("show ")[1] for line in apt.queries] == ["linux-source-9.8 linux-source-9.9"]


@pytest.fixture
def command(store: Store, apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a built, a buildable, an unbuildable and a non-default kernel."""
    publish(store, tmp_path)
    apt.lists("host", "9.9.3-1")
    entries = [
        ENTRY,
        replace(ENTRY, name="9.9-x", of="9.9", patches=(Patch("x", "text"),)),
        packaged("linux-source-9.8", name="9.8"),
        replace(ENTRY, name="9.7", default=False, wanted=("CONFIG_C=y",)),
    ]
    shown = Catalog({one.name: one for one in entries})
    monkeypatch.setattr(kernels, "load_catalog", lambda: shown)
    monkeypatch.setenv("UEVT_CACHE", str(store.root))


@pytest.mark.usefixtures("command")
def test_list_prints_each_reason_once(uevt: Uevt) -> None:
    assert [" ".join(line.split()) for line in uevt("kernels", "list").out.splitlines()] == [
        "9.9 linux-source-9.9 built, 9.9.3-test (9.9.3-1)",
        "9.9-x variant of 9.9 can be built",
        "9.8 linux-source-9.8 cannot be built here [1]",
        "9.7 linux-source-9.9 can be built",
        "[1] linux-source-9.8 is not in this host's package lists; "
        "uevt kernels build 9.8 updates them",
    ]


@pytest.mark.usefixtures("command")
def test_source_of_a_kernel_and_of_its_variant(store: Store, uevt: Uevt) -> None:
    absent = uevt("kernels", "source", "9.9", code=3)
    assert "is not in the store; uevt kernels build 9.9" in absent.err
    tree = store.sources / "linux-source-9.9_9.9.3-1"
    tree.mkdir(parents=True)
    output = uevt("kernels", "source", "9.9", "9.9-x")
    assert output.out.split() == [str(tree), str(tree)]
    assert f"9.9-x is this tree with {VARIANTS / 'x.patch'} applied" in output.err


@pytest.mark.usefixtures("command")
def test_buildable_prints_names_only(uevt: Uevt) -> None:
    assert uevt("kernels", "list", "--buildable").out.split() == ["9.9", "9.9-x"]
    assert uevt("kernels", "list", "--buildable", "9.7", "9.8").out.split() == ["9.7"]
    assert "not allowed with" in uevt("kernels", "list", "--buildable", "--json", code=2).err


@pytest.mark.usefixtures("command")
def test_list_as_json(uevt: Uevt) -> None:
    printed = uevt("kernels", "list", "--json", "9.9-x", "9.9", "9.8")
    variant, built, absent = json.loads(printed.out)
    assert (variant["kernel"], variant["of"], variant["state"]) == ("9.9-x", "9.9", "can be built")
    assert (built["release"], built["revision"], built["of"]) == ("9.9.3-test", "9.9.3-1", None)
    assert Path(built["image"]).is_file()
    assert "package lists" in absent["why"]
    assert "updates them" in absent["hint"]


@pytest.mark.usefixtures("command")
def test_build_of_all_skips_some_kernels(monkeypatch: pytest.MonkeyPatch, uevt: Uevt) -> None:
    found = Store().lookup(ENTRY)
    assert found is not None

    def ensure(entry: KernelEntry, *_: object, **__: object) -> BuiltKernel:
        if entry.name == "9.8":
            raise SourceUnavailable("no package sources offer it", "add one")
        return found

    monkeypatch.setattr(kernels, "ensure", ensure)
    output = uevt("kernels", "build")
    assert len(output.out.splitlines()) == 2
    assert output.err == "uevt: 9.8 is left out: no package sources offer it; add one\n"
    named = uevt("kernels", "build", "9.9", "9.8", code=3)
    assert named.err == "uevt: no package sources offer it; add one\n"


def test_list_takes_less_than_a_second(store: Store, apt: FakeApt) -> None:
    script = "import conformance.cli.main as c; c.main(['kernels', 'list'])"
    output, spent = run_measured(script, store)
    assert len(output.splitlines()) > len(load_catalog().entries)
    assert max(map(len, output.splitlines())) <= WIDTH
    assert spent < 1.0


def test_default_kernels_of_the_shipped_catalog() -> None:
    default = [entry.name for entry in load_catalog().default()]
    assert default == ["6.1", "6.1-bpf-iter", "6.1-byte-status", "6.1-two-pages", "6.12", "7.3"]
