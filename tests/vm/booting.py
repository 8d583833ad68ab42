"""Boot real guests."""

from __future__ import annotations

from pathlib import Path

from host.deadline import Deadline
from vm.machine import Machine, MachineSpec
from vm.snapshots.files import Snapshots


def boot(spec: MachineSpec, directory: Path, snapshots: Path | None = None) -> Machine:
    """Boot a machine, or restore it from a directory of snapshots."""
    return Machine.boot(
        spec,
        directory=directory,
        deadline=Deadline(120.0, "boot"),
        snapshots=Snapshots(snapshots) if snapshots is not None else None,
    )
