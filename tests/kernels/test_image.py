"""A kernel image is checked before a guest boots it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.build.image import NoKernelImage, release_of


def image(tmp_path: Path, *, flags: int = 0x21, sectors: int = 2, paragraphs: int = 64) -> Path:
    """A bzImage of 6.12.117, without code."""
    content = bytearray((1 + (sectors or 4)) * 512 + paragraphs * 16)
    # Documentation/arch/x86/boot.rst: setup_sects, syssize, header, version, kernel_version.
    content[0x1F1] = sectors
    content[0x1F4:0x1F8] = paragraphs.to_bytes(4, "little")
    content[0x202:0x208] = b"HdrS\x0f\x02"
    content[0x20E:0x210] = (0x80).to_bytes(2, "little")
    content[0x236:0x238] = flags.to_bytes(2, "little")
    release = b"6.12.117 (builder@host) #1 SMP\0"
    content[0x280 : 0x280 + len(release)] = release
    file = tmp_path / "bzImage"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("sectors", [2, 0])
def test_release_is_in_the_header(tmp_path: Path, sectors: int) -> None:
    file = image(tmp_path, sectors=sectors)
    assert release_of(file) == "6.12.117"
    # A signature follows the kernel.
    file.write_bytes(file.read_bytes() + b"signature")
    assert release_of(file) == "6.12.117"


def test_truncated_image_is_refused(tmp_path: Path) -> None:
    file = image(tmp_path)
    content = file.read_bytes()
    for size in (len(content) - 1, 1024):
        file.write_bytes(content[:size])
        with pytest.raises(NoKernelImage, match=f"it is truncated: {size} of 2560 bytes"):
            release_of(file)


def test_32_bit_kernel_is_refused(tmp_path: Path) -> None:
    file = image(tmp_path, flags=0)
    with pytest.raises(NoKernelImage, match="it is a 32-bit kernel") as caught:
        release_of(file)
    assert "x86-64" in caught.value.hint
    # Before protocol 2.12 the header does not tell.
    content = bytearray(file.read_bytes())
    content[0x206] = 0x0B
    file.write_bytes(content)
    assert release_of(file) == "6.12.117"
