"""Compile the guest's half of the agent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from vm.guest import version
from vm.qemu import guest_files
from vm.qemu.guest_files import NotCompiled, compile_agent

LIBRARY = "guest/__pycache__/engine.so"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package without compiled files."""
    copy = tmp_path / "vm"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(guest_files.__file__).parents[1], copy, ignore=ignored)
    monkeypatch.setattr(guest_files, "_VM", copy)
    monkeypatch.setattr(guest_files, "_LIBRARY", copy / LIBRARY)
    monkeypatch.setattr(version, "_VM", str(copy))
    return copy


def test_library_is_compiled_once(package: Path) -> None:
    compile_agent()
    made = (package / LIBRARY).stat()
    compile_agent()
    assert (package / LIBRARY).stat().st_ino == made.st_ino
    assert not list((package / LIBRARY).parent.glob("uevt-scratch-*"))


@pytest.mark.parametrize("name", ["calls.c", "native.h"])
def test_changed_source_is_compiled(package: Path, name: str) -> None:
    compile_agent()
    made = (package / LIBRARY).stat()
    changed = package / "guest" / "native" / name
    changed.write_text(changed.read_text() + "\n")
    # The mtime does not matter.
    os.utime(changed, (0, 0))
    compile_agent()
    assert (package / LIBRARY).stat().st_ino != made.st_ino


def test_missing_compiler(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotCompiled, match=r"native could not be compiled.*gcc") as caught:
        compile_agent()
    assert "install gcc" in caught.value.hint
    assert not (package / LIBRARY).exists()


def test_no_compiler_warns(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = ("-Werror", "-Wconversion", "-Wno-sign-conversion", "-Wshadow", "-Wstrict-prototypes")
    monkeypatch.setattr(guest_files, "_FLAGS", (*guest_files._FLAGS, *strict))
    compile_agent()
    assert (package / LIBRARY).exists()


def test_compile_error(package: Path) -> None:
    (package / "guest" / "native" / "calls.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(NotCompiled, match="nothing"):
        compile_agent()
    assert [each.name for each in (package / LIBRARY).parent.glob("*engine*.so")] == []
