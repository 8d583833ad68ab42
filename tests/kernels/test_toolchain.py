"""Missing tools are named all at once; the compiler and linker are identified."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.errors import HostTrouble, MissingTool
from kernels.tools.toolchain import Toolchain, require, stamp


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
