"""What a worker offers and a task takes, as resources of dask.

``vm``, ``kvm`` or ``tcg``: guests at a time; ``cores``; ``mib``: memory.  A worker of `uevt` also
offers ``machine-…``, by which a tree is built on the machine that has it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from conformance.session.launch import free_mib
from conformance.session.target.target import prove_accelerator
from host.arch import IMAGE
from kernels.store.store import Store
from vm.errors import VmError
from vm.qemu.accelerator import KVM_DEVICE

Resources = Mapping[str, float]

_VM = "vm"
_ACCELERATORS = ("tcg", "kvm")
_CORES, _MEMORY = "cores", "mib"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine() -> str:
    """The resource that workers on this machine offer, and no others."""
    return f"machine-{_BOOT_ID.read_text().strip()}"


def offered(vms: int, *, share: int = 1, least_mib: int = 0) -> dict[str, float]:
    """What a worker offers for so many guests at a time, one of ``share`` workers on this machine.

    ``least_mib`` is memory that it offers in any case.
    """
    return {
        _VM: vms,
        _accelerator(): vms,
        machine(): vms,
        _CORES: max(1, len(os.sched_getaffinity(0)) // share),
        _MEMORY: max(least_mib, free_mib() // share),
    }


def of_build(*, here: bool) -> dict[str, float]:
    """What a build takes; ``here``: only on this machine."""
    return {_VM: 1, **({machine(): 1} if here else {})}


def of_shard(memory_mib: int, accelerator: str | None) -> dict[str, float]:
    """What a shard takes, on a guest with this accelerator."""
    return {_VM: 1, _CORES: 1, _MEMORY: memory_mib, **({accelerator: 1} if accelerator else {})}


def room(task: Resources, worker: Resources) -> int:
    """How many tasks a worker can run at a time."""
    return int(min(worker.get(name, 0) // needed for name, needed in task.items()))


def most_offered(workers: Sequence[Resources]) -> str:
    """The accelerator of most guests."""
    return max(_ACCELERATORS, key=lambda name: sum(each.get(name, 0) for each in workers))


def _accelerator() -> str:
    """kvm if it boots a kernel of the store; without one, if its device can be opened."""
    for image in sorted(Store().root.glob(f"kernels/*/{IMAGE}"))[:1]:
        with suppress(VmError):
            return prove_accelerator(image).name
    return "kvm" if os.access(KVM_DEVICE, os.R_OK | os.W_OK) else "tcg"
