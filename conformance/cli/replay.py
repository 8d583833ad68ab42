"""`uevt replay`: the program of a bundle on other kernels."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from conformance.results.bundle import Bundle, read_bundle
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.multi_format import from_zero
from conformance.session.options import KERNEL, declare_kernel, groups_of, make_absolute, replaced
from host.temporary_directories import scratch
from host.text import one_line
from kernels.errors import HostTrouble


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `uevt replay`."""
    about = "run the program of a bundle on kernels; name the first diverging operation"
    usage = "uevt replay BUNDLE (--kernel K … | --tree DIR | --image FILE) [option …]"
    replay = commands.add_parser("replay", help=about, description=about, usage=usage)
    replay.add_argument("bundle", type=Path, metavar="BUNDLE", help="a file of uevt bundle")
    group = groups_of(replay)
    about = "6.12 or model; may be repeated"
    group(KERNEL)("--kernel", action="append", metavar="K", help=about)
    declare_kernel(group)
    replay.set_defaults(perform=_perform, abi=None, module=[], out=None, ktap=None, resume=None)


def _perform(arguments: argparse.Namespace) -> int:
    """0 if every kernel gives allowed answers, else 1.  Raises KernelsError, ReportError."""
    bundle = read_bundle(arguments.bundle)
    make_absolute(arguments)
    recorded = bundle.head.kernel.id
    sys.stdout.write(f"{bundle.result.id}, recorded on {recorded}: {bundle.result.difference}\n")
    diverging = []
    for kernel in arguments.kernel or [None]:
        options = replaced(arguments, kernel=kernel)
        name, found = _on_kernel(bundle, options)
        sys.stdout.write(f"{name}: {one_line(found) or 'every answer is an allowed one'}\n")
        diverging += [name] if found else []
    names = ", ".join(diverging) or "no kernel"
    sys.stdout.write(f"diverging: {names}\n")
    return exit_code(Ending.UNEXPECTED if diverging else Ending.PASS)


def _on_kernel(bundle: Bundle, options: argparse.Namespace) -> tuple[str, str]:
    """The id of a kernel, and its first diverging operation, "" if there is none."""
    # Imported late: other commands do not need them.
    from conformance.client.executor import ModelExecutor
    from conformance.model.machine import Model
    from conformance.ops import RunProgram
    from conformance.repro.of_result import profile_of
    from conformance.runner.guest_executor import GuestExecutor
    from conformance.runner.guest_setup import ACTOR, GuestSetup
    from conformance.runner.host_programs import HostPrograms
    from conformance.runner.patience import Patience
    from conformance.runner.process_pool import ProcessPool
    from conformance.runner.recorded_run import run_recorded, shown
    from conformance.session.target.target import resolve
    from conformance.session.worker.machine_guest import MachineGuest
    from vm.errors import GuestCrashed, VmError

    program = from_zero(bundle.result.evidence.program)
    target = resolve(options)
    if target.is_model:
        found = run_recorded(program, ModelExecutor(Model(profile_of(bundle.head))))
        return target.id, str(found or "")
    try:
        with scratch() as directory:
            guest = MachineGuest(target, directory)
            try:
                guest.wait_ready()
                runs = any(step.operation["op"] == RunProgram.__name__ for step in program)
                if runs:
                    guest.pristine(programs=True)
                GuestSetup(guest)
                if runs:
                    HostPrograms(guest).mount(guest.mounting())
                pool = ProcessPool(guest, standing=ACTOR)
                found = run_recorded(program, GuestExecutor(guest, pool, Patience()))
            finally:
                guest.close()
    except GuestCrashed as error:
        return target.id, f"{shown(program)}: the kernel crashed: {error}"
    except VmError as error:
        raise HostTrouble(str(error), error.hint) from error
    return target.id, str(found or "")
