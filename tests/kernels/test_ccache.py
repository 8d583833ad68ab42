"""ccache comes in front of the compiler and is not part of a kernel's identity."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kernels.build.build import ensure
from kernels.store.store import Store
from kernels.tools import ccache
from tests.kernels.fake_make import ENTRY, FakeMake


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ccache first on PATH that prints its cache directory."""
    directory = tmp_path / "fake-ccache"
    directory.mkdir()
    (directory / "ccache").write_text(f"#!/bin/sh\necho {tmp_path}/cache\n")
    (directory / "ccache").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)
    return directory


def test_ccache_is_linked_by_the_compilers_name(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DIR", "/mine")
    variables = ccache.in_front(tmp_path / "links")
    assert variables["CCACHE_DIR"] == "/mine"
    found = shutil.which("gcc", path=variables["PATH"])
    assert found == str(tmp_path / "links" / "gcc")
    assert Path(found).resolve() == fake / "ccache"
    # Again, and after ccache moved.
    (tmp_path / "links" / "gcc").unlink()
    (tmp_path / "links" / "gcc").symlink_to("/nowhere")
    assert ccache.in_front(tmp_path / "links") == variables
    assert (tmp_path / "links" / "gcc").resolve() == fake / "ccache"


def test_host_without_ccache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ccache.in_front(tmp_path / "links") == {}
    assert not (tmp_path / "links").exists()


@pytest.mark.parametrize("answer", ["", "relative"])
def test_ccache_without_a_writable_cache_is_ignored(
    fake: Path, tmp_path: Path, answer: str
) -> None:
    (fake / "ccache").write_text(f"#!/bin/sh\necho {answer}\n")
    assert ccache.in_front(tmp_path / "links") == {}


def test_ccache_is_queried_in_the_environment_of_make(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG variables may determine its cache and settings."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("NOT_MAKES", "/relative/../..")
    answer = 'test -z "$NOT_MAKES" && echo "$XDG_CACHE_HOME/ccache"'
    (fake / "ccache").write_text(f"#!/bin/sh\n{answer}\n")
    assert ccache.in_front(tmp_path / "links")["XDG_CACHE_HOME"] == str(tmp_path / "xdg")


def test_ccache_changes_neither_key_nor_make(store: Store, make: FakeMake, fake: Path) -> None:
    first = ensure(ENTRY, store)
    assert (store.ccache / "gcc").is_symlink()
    called = make.diary
    shutil.rmtree(store.root / "kernels")
    shutil.rmtree(store.objects)
    (fake / "ccache").unlink()
    second = ensure(ENTRY, store)
    assert second.key == first.key
    assert make.diary == called * 2
