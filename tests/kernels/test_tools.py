"""The tools of a build: all missing ones are named, and ccache comes in front of the compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernels.build.build import ensure
from kernels.errors import HostTrouble, MissingTool
from kernels.store.store import Store
from kernels.tools import ccache
from kernels.tools.toolchain import Toolchain, require, stamp
from tests.kernels.fake_make import ENTRY, FakeMake
from tests.shell_scripts import write_script


@pytest.fixture
def fake(programs: Path, tmp_path: Path) -> Path:
    """A ccache that prints its cache directory."""
    return write_script(programs / "ccache", f"echo {tmp_path}/cache")


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """The directory of the compiler's links, which is absent."""
    return tmp_path / "links"


def test_compiler_is_a_link_to_ccache(
    fake: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DIR", "/mine")
    variables = ccache.in_front(links)
    assert variables["CCACHE_DIR"] == "/mine"
    assert shutil.which("gcc", path=variables["PATH"]) == str(links / "gcc")
    assert (links / "gcc").resolve() == fake
    # Again, and after ccache moved.
    (links / "gcc").unlink()
    (links / "gcc").symlink_to("/nowhere")
    assert ccache.in_front(links) == variables
    assert (links / "gcc").resolve() == fake


@pytest.mark.usefixtures("bare_host")
def test_host_without_ccache(links: Path) -> None:
    assert ccache.in_front(links) == {}
    assert not links.exists()


@pytest.mark.parametrize("answer", ["", "relative"])
def test_ccache_without_a_writable_cache_is_ignored(fake: Path, links: Path, answer: str) -> None:
    write_script(fake, f"echo {answer}")
    assert ccache.in_front(links) == {}


def test_ccache_has_the_environment_of_make(
    fake: Path, links: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG variables may determine its cache and settings."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NOT_MAKES", "/relative/../..")
    write_script(fake, 'test -z "$NOT_MAKES" && echo "$XDG_CACHE_HOME/ccache"')
    assert ccache.in_front(links)["XDG_CACHE_HOME"] == str(tmp_path)


def test_ccache_changes_neither_key_nor_make(store: Store, make: FakeMake, fake: Path) -> None:
    first = ensure(ENTRY, store)
    assert (store.ccache / "gcc").is_symlink()
    called = make.diary
    shutil.rmtree(store.root / "kernels")
    shutil.rmtree(store.objects)
    fake.unlink()
    second = ensure(ENTRY, store)
    assert second.key == first.key
    assert make.diary == called * 2


def test_all_missing_tools_are_named_at_once(bare_host: Path) -> None:
    for name in ("gcc", "apt-get", "make"):
        (bare_host / name).touch(0o755)
    with pytest.raises(MissingTool) as caught:
        require(("make", "flex", "bison", "flex"))
    assert str(caught.value) == "missing on this host: bison, flex"
    assert "install bison flex" in caught.value.hint
    assert isinstance(caught.value, HostTrouble)


def test_toolchain_names_compiler_and_linker() -> None:
    toolchain = Toolchain.of_host()
    assert "gcc" in toolchain.version
    assert "; GNU ld" in toolchain.version
    assert toolchain.stamp == stamp() != ""
