"""`python -m tests.bench.state_kills [KERNEL]`: kill whoever makes or restores a saved state, or
its QEMU; the next machine has to come up, and a state that is found has to be whole.

Ends with a table, and 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.session.options import apply_defaults, declare
from conformance.session.target.target import resolve
from conformance.session.worker.machine_guest import BOOT_S, machine_spec
from host.deadline import Deadline
from host.die_with_parent import tie
from tests.bench.kills import Tally, gone
from tests.bench.store_kills import below
from vm.errors import VmError
from vm.machine import Machine
from vm.qemu.command_line import MachineSpec
from vm.snapshots.files import Snapshots, snapshot_key
from vm.snapshots.policy import BOOTED, RESTORED

VICTIMS = ("owner", "qemu", "both")
DRILLS = ("make", "restore")


class Drills:
    """The states of one kind of machine."""

    def __init__(self, spec: MachineSpec, directory: Path) -> None:
        self._spec = spec
        self._directory = directory
        self.states = Snapshots(directory / "states")
        self._key = snapshot_key(spec)

    def boot(self) -> str:
        """Bring a machine up and down; how it came up.  Raises VmError."""
        deadline = Deadline(BOOT_S * self._spec.accelerator.slowness, "machine")
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            machine = Machine.boot(
                self._spec, directory=Path(directory), deadline=deadline, snapshots=self.states
            )
            with machine:
                assert machine.healthy()
                assert machine.info["release"]
                return machine.start

    def once(self, drill: str, victim: str, takes_s: float, tally: Tally) -> None:
        """Kill one, and bring up two more."""
        if drill == "make":
            self.states.discard(self._key)
        parent, pid = os.getpid(), os.fork()
        if not pid:
            tie(parent)
            try:
                tally.found[f"start {self.boot()}"] += 1
            finally:
                os._exit(0)
        time.sleep(random.uniform(0, takes_s))
        chosen = {"owner": [pid], "qemu": below(pid), "both": [pid, *below(pid)]}[victim]
        tally.kills += any(list(map(gone, chosen)))
        os.waitpid(pid, 0)
        found = self.states.find(self._key)
        if found is not None:
            descriptor = os.open(found.state, os.O_RDONLY)
            assert found.intact(descriptor), "a state was found that is not whole"
            os.close(descriptor)
        for _ in range(2):
            start = self.boot()
            assert start in (BOOTED, RESTORED), start
        assert start == RESTORED, "no state was made"
        left = {each.name for each in (self._directory / "states").iterdir()}
        left -= {self._key, f"{self._key}.lock"}
        self.states.clean_up()
        tally.found["scratch until tidied"] += len(left)
        tally.found["left"] += len(list((self._directory / "states").iterdir())) > 2


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.state_kills")
    parser.add_argument("kernel", nargs="?", default="6.12")
    parser.add_argument("--kills", type=int, default=9, help="of each drill and victim")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args(argv)
    random.seed(arguments.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    declare(parser.add_argument)
    options = parser.parse_args([])
    apply_defaults(options)
    options.kernel = arguments.kernel
    spec, why = machine_spec(resolve(options))
    assert not why, why
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="uevt-kills-") as directory:
        drills = Drills(spec, Path(directory))
        takes_s = {}
        for drill in DRILLS:
            began = time.monotonic()
            drills.boot()
            takes_s[drill] = time.monotonic() - began
        for drill in DRILLS:
            for victim in VICTIMS:
                tally = Tally()
                while tally.kills < arguments.kills and len(tally.wrong) < 3:
                    try:
                        drills.once(drill, victim, takes_s[drill], tally)
                    except (AssertionError, VmError, OSError) as error:
                        tally.wrong.append(str(error))
                        sys.stdout.write(f"WRONG {drill} {victim}: {error}\n")
                tally.found += type(tally.found)()
                sys.stdout.write(f"{tally.line(drill, victim)}\n")
                sys.stdout.flush()
                wrong += len(tally.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
