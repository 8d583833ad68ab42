"""A first boot of an image that nobody has booted here: does it have the drivers it needs?"""

from __future__ import annotations

from dataclasses import replace

from conformance.results.exit_codes import KernelOrigin
from conformance.session.target.target import Target
from conformance.session.worker.machine_guest import BOOT_S, machine_spec, saved_states
from host.deadline import Deadline
from host.kernel_reports import CRASHES
from host.temporary_directories import scratch
from vm.errors import BootFailed, NoRoot, VmError
from vm.kernel_log.reports import classify
from vm.machine import Machine
from vm.qemu.command_line import MachineSpec
from vm.snapshots.files import snapshot_key


def check_boots(target: Target) -> None:
    """Raise NoRoot where missing drivers are why no case could run; all else is told later.

    What was booted before, and its state saved, is not tried again.  Raises OSError.
    """
    if target.image is None or target.origin is not KernelOrigin.USER or target.wanted:
        return
    spec, _ = machine_spec(target)
    if spec.root is not None and saved_states().find(snapshot_key(spec)) is not None:
        return
    trouble = _tried(spec)
    if spec.root is None or not isinstance(trouble, BootFailed) or _crashed(trouble):
        return
    # A root of its own is there without any driver, and hides that there are none.
    _tried(replace(spec, root=None))


def _tried(spec: MachineSpec) -> VmError | None:
    """What a boot came to; its state is saved for the guests.  Raises NoRoot, OSError."""
    deadline = Deadline(BOOT_S * spec.accelerator.slowness, "agent after the boot")
    with scratch() as directory:
        try:
            Machine.boot(
                spec, directory=directory, deadline=deadline, snapshots=saved_states()
            ).close()
        except NoRoot:
            raise
        except VmError as trouble:
            return trouble
    return None


def _crashed(failed: BootFailed) -> bool:
    """Whether the kernel itself ended the boot: then its drivers are not the matter."""
    return any(found.kind in CRASHES for found in classify(failed.console))
