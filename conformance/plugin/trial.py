"""A first boot of an image that nobody has booted here: does it have the drivers it needs?"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from conformance.plugin.guests import BOOT_S, machine_spec, saved_states
from conformance.plugin.target import Target
from conformance.report.exits import KernelOrigin
from vm.deadline import Deadline
from vm.errors import NoRoot, VmError
from vm.machine import Machine
from vm.snapshot import snapshot_key


def try_image(target: Target) -> None:
    """Raise NoRoot where missing drivers are why no case could run; all else is told later.

    What was booted before, and its state saved, is not tried again.  Raises OSError.
    """
    if target.image is None or target.origin is not KernelOrigin.USER or target.wanted:
        return
    spec = machine_spec(target)
    if spec.root is not None and saved_states().find(snapshot_key(spec)) is not None:
        return
    # A root of its own would be mounted without any driver, and hide that there are none.
    spec = replace(spec, root=None)
    deadline = Deadline(BOOT_S * spec.accelerator.slowness, "agent after the boot")
    with tempfile.TemporaryDirectory(prefix="uevt-") as directory:
        try:
            Machine.boot(spec, directory=Path(directory), deadline=deadline).close()
        except NoRoot:
            raise
        except VmError:
            return
