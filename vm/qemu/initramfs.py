"""The initramfs for a kernel whose virtio and 9p drivers are modules.

virtme-ng's init loads the modules in order, mounts the host's root and starts the agent's init.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from host.temporary_directories import scratch
from vm.errors import HostTrouble
from vm.qemu import elf

#: Modules required for the root and the channel, unless they are built in.
NEEDED = ("virtio_pci", "9pnet_virtio", "9p", "virtio_console")

_BUSYBOX = ("busybox-static", "busybox.static", "busybox")
#: Mount options of the root, as on the kernel command line.
_ACCESS = "ro,cache=loose"


class BusyboxMissing(HostTrouble):
    """No statically linked busybox."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; the initramfs for a kernel with modules needs it",
            hint="install it (Debian: apt install busybox-static; Fedora: dnf install busybox)",
        )


def pack(modules: Sequence[tuple[str, bytes]], directory: Path) -> Path:
    """The initramfs that loads modules, given as name and content in load order.

    `directory` caches it.  Raises BusyboxMissing.
    """
    from virtme.mkinitramfs import Config, mkinitramfs

    busybox = _static_busybox()
    digest = hashlib.sha256(busybox.read_bytes())
    for name, content in modules:
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    packed = directory / f"{digest.hexdigest()}.cpio"
    if packed.is_file():
        return packed
    directory.mkdir(parents=True, exist_ok=True)
    with scratch(directory) as work:
        config = Config()
        config.busybox = str(busybox)
        config.access = _ACCESS
        for name, content in modules:
            file = work / f"{name}.ko"
            file.write_bytes(content)
            config.modfiles.append(str(file))
        fresh = work / "initramfs"
        with fresh.open("wb") as out:
            mkinitramfs(out, config)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(packed)
    return packed


def _static_busybox() -> Path:
    found = [path for name in _BUSYBOX if (path := shutil.which(name))]
    if not found:
        raise BusyboxMissing("busybox is not installed")
    for path in found:
        if _is_static(Path(path)):
            return Path(path)
    raise BusyboxMissing(f"{found[0]} is not statically linked")


def _is_static(program: Path) -> bool:
    kinds = [segment.kind for segment in elf.segments(program)]
    return bool(kinds) and elf.PT_INTERP not in kinds
