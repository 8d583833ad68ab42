"""A kernel image and its modules are checked before a guest boots them."""

from __future__ import annotations

import gzip
import lzma
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from host import packages
from kernels.build.bundled_modules import ModulesDirectory, NoModules
from kernels.build.image import NoKernelImage, release_of
from kernels.build.ko_file import read_module
from kernels.errors import MissingTool, UserMistake

RELEASE = "6.1.0-9-amd64"


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


@pytest.mark.parametrize("read", [release_of, read_module])
def test_device_is_refused(read: Callable[[Path], object]) -> None:
    with pytest.raises(UserMistake, match="not a regular file"):
        read(Path("/dev/null"))


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


def ko(name: str, depends: str = "", release: str = RELEASE) -> bytes:
    """The part of a module's file that is read."""
    info = f"\0license=GPL\0depends={depends}\0name={name}\0vermagic={release} SMP mod_unload \0"
    return b"\x7fELF" + name.encode() + info.encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with the modules of one release."""
    kernel = tmp_path / "lib/modules" / RELEASE / "kernel"
    (kernel / "net").mkdir(parents=True)
    (kernel / "net/9pnet.ko").write_bytes(ko("9pnet"))
    virtio = ko("9pnet_virtio", "9pnet,virtio-ring")
    (kernel / "net/9pnet_virtio.ko.xz").write_bytes(lzma.compress(virtio))
    (kernel / "9p.ko.gz").write_bytes(gzip.compress(ko("9p", "netfs,9pnet")))
    (kernel / "netfs.ko").write_bytes(ko("netfs"))
    (kernel / "virtio_ring.ko").write_bytes(ko("virtio_ring"))
    return tmp_path


@pytest.mark.parametrize("below", ["", f"lib/modules/{RELEASE}"])
def test_dependencies_come_first(root: Path, below: str) -> None:
    wanted = ["virtio_pci", "9pnet_virtio", "9p"]
    modules = ModulesDirectory(root / below, RELEASE).in_load_order(wanted)
    assert [one.name for one in modules] == ["9pnet", "virtio_ring", "9pnet_virtio", "netfs", "9p"]
    assert modules[2].content == ko("9pnet_virtio", "9pnet,virtio-ring")


def test_zstd_modules_need_zstd(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = root / "lib/modules" / RELEASE / "kernel/netfs.ko"
    file.unlink()
    packed = file.with_name("netfs.ko.zst")
    if not packages.missing(["zstd"]):
        made = subprocess.run(["zstd", "-cq"], input=ko("netfs"), capture_output=True, check=True)
        packed.write_bytes(made.stdout)
        (only,) = ModulesDirectory(root, RELEASE).in_load_order(["netfs"])
        assert only.content == ko("netfs")
    packed.write_bytes(b"")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingTool, match="zstd"):
        ModulesDirectory(root, RELEASE).in_load_order(["netfs"])


def test_modules_of_another_release_are_refused(root: Path) -> None:
    with pytest.raises(NoModules, match=f"has {RELEASE}, the image is 6.12.1"):
        ModulesDirectory(root, "6.12.1")
    within = root / "lib/modules" / RELEASE
    with pytest.raises(NoModules, match=f"its netfs is for {RELEASE}, the image is 6.12.1"):
        ModulesDirectory(within, "6.12.1").in_load_order(["netfs"])


def test_directory_without_modules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoModules, match="it has no modules of"):
        ModulesDirectory(tmp_path, RELEASE)
    with pytest.raises(NoModules, match="no such directory"):
        ModulesDirectory(tmp_path / "absent", RELEASE)


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"")[:10] + b"\xff" * 20], ids=["no gzip", "corrupt"]
)
def test_damaged_module_is_refused(root: Path, content: bytes) -> None:
    (root / "lib/modules" / RELEASE / "kernel/9p.ko.gz").write_bytes(content)
    with pytest.raises(NoModules, match="it cannot be read"):
        ModulesDirectory(root, RELEASE).in_load_order(["9p"])
