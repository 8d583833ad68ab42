"""The machine that boots a target, and the store of saved machine states."""

from __future__ import annotations

from conformance.session.target.target import Target
from host.deadline import Deadline
from kernels.store.store import default_root
from vm.qemu.command_line import MachineSpec, Request
from vm.snapshots.files import Snapshots

# Seconds of an idle machine from the start of QEMU to the agent's first answer.
_BOOT_S = 12.0


def machine_spec(target: Target, opening: tuple[Request, ...]) -> tuple[MachineSpec, str]:
    """The machine for a target, and why it uses the host's root, if unintended.

    ``opening`` are its first requests (MachineSpec).  Raises VmError.
    """
    assert target.image is not None
    assert target.accelerator is not None
    # Imported late: a run on the running kernel cleans the store up, and boots nothing.
    from vm.qemu.root_archive import interpreter, root_archive

    root, why = None, ""
    # An initramfs that loads drivers continues on the host's root.
    if target.initramfs is None:
        try:
            root = root_archive(interpreter(), default_root())
        except OSError as error:
            # A read-only store, for example: use the host's root.
            why = f"its root could not be kept: {error}"
    spec = MachineSpec(
        target.image,
        target.accelerator,
        memory_mib=target.memory_mib,
        append=target.append,
        root=root,
        initramfs=target.initramfs,
        cache=default_root(),
        opening=opening,
    )
    return spec, why


def boot_deadline(spec: MachineSpec) -> Deadline:
    """The deadline of the first boot of a machine."""
    return Deadline(_BOOT_S * spec.accelerator.slowness, "agent after the boot")


def saved_states() -> Snapshots:
    """The store of saved machine states."""
    return Snapshots(default_root() / "snapshots")
