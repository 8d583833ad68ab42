"""Boot a user's image once before the run, to check that it has the drivers it needs."""

from __future__ import annotations

from msgspec.structs import replace

from conformance.results.exit_codes import KernelOrigin
from conformance.runner.prepared_guest import OPENING
from conformance.session.target.machine import boot_deadline, machine_spec, saved_states
from conformance.session.target.target import Target
from host.kernel_reports import CRASHES
from host.temporary_directories import scratch
from vm.errors import BootFailed, NoRoot, VmError
from vm.kernel_log.reports import classify
from vm.machine import Machine
from vm.qemu.command_line import MachineSpec
from vm.snapshots.files import snapshot_key


def check_boots(target: Target) -> None:
    """Raise NoRoot if missing drivers keep every case from running; cases report other errors.

    An image with a saved state is not booted.  Raises OSError.
    """
    if target.image is None or target.origin is not KernelOrigin.USER or target.wanted:
        return
    spec, _ = machine_spec(target, OPENING)
    if spec.root is not None and saved_states().find(snapshot_key(spec)) is not None:
        return
    error = _boot(spec)
    if spec.root is None or not isinstance(error, BootFailed) or _crashed(error):
        return
    # An archive as root needs no drivers, and hides that there are none.
    _boot(replace(spec, root=None))


def _boot(spec: MachineSpec) -> VmError | None:
    """The error of a boot, or None; its state is saved for the guests.  Raises NoRoot, OSError."""
    with scratch() as directory:
        try:
            Machine.boot(
                spec,
                directory=directory,
                deadline=boot_deadline(spec),
                snapshots=saved_states(),
            ).close()
        except NoRoot:
            raise
        except VmError as error:
            return error
    return None


def _crashed(failed: BootFailed) -> bool:
    """Whether the kernel crashed: then drivers are not the cause."""
    return any(found.kind in CRASHES for found in classify(failed.console))
