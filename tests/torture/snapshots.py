"""Kill a machine while it makes or restores a snapshot: the next machine must come up.

``python -m tests.torture.snapshots DIRECTORY`` brings one machine up and down, and prints how.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from conformance.runner.prepared_guest import OPENING
from conformance.session.options import default_options
from conformance.session.target.machine import boot_deadline, machine_spec
from conformance.session.target.target import resolve
from tests.faults import Fault, kill_all
from tests.torture.place import Place
from tests.torture.runs import KERNEL, Report
from vm.machine import Machine
from vm.snapshots import RESTORED
from vm.snapshots.files import Snapshots

_LIMIT_S = 300.0
# Seconds, from the start of Python, within which a snapshot is made or restored.
_MAKE_S, _RESTORE_S = 12.0, 2.5


def disturbed_snapshot(fault: Fault, place: Place, random: Random) -> Report:
    """Kill the owner, its QEMU, or both, at a random moment; then bring up two machines."""
    report = Report((fault,))
    directory = place.directory / "snapshots"
    making = not directory.exists() or random.random() < 0.5
    if making:
        shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(exist_ok=True)
    began = time.monotonic()
    with place.start(["-m", __name__, str(directory)], {}) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.5, _MAKE_S if making else _RESTORE_S))
        qemus = [pid for pid, words in place.processes().items() if "qemu-system" in words]
        kill_all(random.choice(([process.pid], qemus, [process.pid, *qemus])))
        process.wait(_LIMIT_S)
    report.blamed += [f"a damaged snapshot was found: {key}" for key in _damaged(directory)]
    for _ in range(2):
        with place.start(["-m", __name__, str(directory)], {}) as process:
            code = process.wait(_LIMIT_S)
        output = place.output.read_text(errors="replace").strip()
        if code:
            report.lost.append(f"no machine came up: {output[-300:]}")
    if not report.lost and output != RESTORED:
        report.lost.append(f"the second machine was not restored but {output}")
    report.seconds = time.monotonic() - began
    report.leaked += place.left()
    if report.seconds > fault.allowance_s + 2 * _MAKE_S:
        report.late.append(f"{report.seconds:.1f} s")
    return report


def _damaged(directory: Path) -> list[str]:
    """Keys of snapshots that are found although they are damaged."""
    snapshots, keys = Snapshots(directory), []
    for entry in directory.iterdir():
        found = snapshots.find(entry.name) if entry.is_dir() else None
        if found is not None:
            descriptor = os.open(found.state, os.O_RDONLY)
            keys += [] if found.intact(descriptor) else [entry.name]
            os.close(descriptor)
    return keys


def bring_up(directory: Path) -> str:
    """Bring a machine up and down; how it came up.  Raises VmError."""
    spec, why = machine_spec(resolve(default_options(kernel=KERNEL)), OPENING)
    assert not why, why
    deadline = boot_deadline(spec)
    with (
        tempfile.TemporaryDirectory(dir=directory.parent) as scratch,
        Machine.boot(
            spec, directory=Path(scratch), deadline=deadline, snapshots=Snapshots(directory)
        ) as machine,
    ):
        machine.call("", [["ping"]])
        return machine.start


if __name__ == "__main__":
    sys.stdout.write(f"{bring_up(Path(sys.argv[1]))}\n")
