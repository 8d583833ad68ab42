"""Truncated and foreign files have no segments."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from vm.qemu import elf
from vm.qemu.root_archive import interpreter


@pytest.mark.parametrize("length", [0, 5, 63, 64, 100, 64 + 56])
def test_truncated_file(tmp_path: Path, length: int) -> None:
    """The program header table is missing or incomplete."""
    file = tmp_path / "library.so"
    file.write_bytes(interpreter().read_bytes()[:length])
    assert elf.segments(file) == ()
    assert elf.loader_of(file) is None
    assert elf.loaded(file) == file.read_bytes()


@pytest.mark.parametrize("start", [1 << 40, (1 << 64) - 1])
def test_table_beyond_the_end_of_the_file(tmp_path: Path, start: int) -> None:
    header = bytearray(interpreter().read_bytes()[:4096])
    struct.pack_into("<Q", header, 32, start)
    file = tmp_path / "library.so"
    file.write_bytes(header)
    assert elf.segments(file) == ()
