"""The initramfs for kernels whose drivers are modules."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from vm.qemu.initramfs import BusyboxMissing, pack


def elf(*, interpreter: bool) -> bytes:
    """An ELF64 file with one program header: PT_INTERP or PT_LOAD."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 0x20, 64)
    struct.pack_into("<HH", head, 0x36, 56, 1)
    return bytes(head) + struct.pack("<I", 3 if interpreter else 1) + bytes(52)


@pytest.fixture
def busybox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin/busybox"
    program.parent.mkdir()
    program.write_bytes(elf(interpreter=False))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def test_modules_are_loaded_in_order(busybox: Path, tmp_path: Path) -> None:
    place = pack([("b", b"content of b"), ("a", b"content of a")], tmp_path / "kept")
    content = place.read_bytes()
    assert b"content of a" in content
    assert content.index(b"insmod modules/b.ko") < content.index(b"insmod modules/a.ko")
    assert b"-o ro,cache=loose,version=9p2000.L" in content
    assert list((tmp_path / "kept").iterdir()) == [place]
    assert pack([("b", b"content of b"), ("a", b"content of a")], tmp_path / "kept") == place
    assert pack([("b", b"another")], tmp_path / "kept") != place


def test_busybox_must_be_static(
    busybox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busybox.write_bytes(elf(interpreter=True))
    with pytest.raises(BusyboxMissing, match="busybox is not statically linked") as caught:
        pack([], tmp_path / "kept")
    assert "busybox-static" in caught.value.hint
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BusyboxMissing, match="busybox is not installed"):
        pack([], tmp_path / "kept")
