"""What the commands share that run something of their own on one kernel."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.abi.profile import ProfileError
from conformance.session.options import (
    KERNEL,
    Groups,
    declare_build,
    declare_kernel,
    groups_of,
    make_absolute,
)
from conformance.session.target.target import MODEL, Target, resolve
from kernels.errors import HostTrouble, UserMistake
from vm.errors import VmError


def declare(
    parser: argparse.ArgumentParser,
    perform: Callable[[argparse.Namespace], int],
    *,
    images: bool = True,
) -> Groups:
    """Declare the options of the kernel of a command; the groups for its other options.

    Without ``images`` it takes only kernels that are built.
    """
    group = groups_of(parser)
    group(KERNEL)("--kernel", metavar="K", help="6.12 or 6.12@REVISION")
    (declare_kernel if images else declare_build)(group)
    # What else a run has that describes its kernel.
    others = dict.fromkeys(("abi", "out", "ktap", "resume", "isolation"))
    others |= {} if images else dict.fromkeys(("image", "modules"))
    parser.set_defaults(perform=perform, module=[], **others)
    return group


def refuse_model(arguments: argparse.Namespace, what: str, hint: str) -> None:
    """Raise UserMistake for the model, which is no kernel."""
    if arguments.kernel == MODEL:
        raise UserMistake(what, hint)


@contextmanager
def resolved(arguments: argparse.Namespace, verb: str) -> Iterator[Target]:
    """The target of the options, built; a hangup ends what is done to it like Ctrl-C.

    Raises KernelsError, also for what goes wrong with the guest; ``verb`` is what is done to the
    kernel.
    """
    make_absolute(arguments)
    clean_up_on_hangup()
    try:
        yield resolve(arguments)
    except ProfileError as error:
        raise UserMistake(str(error), f"only kernels with user_events can be {verb}") from error
    except VmError as error:
        raise HostTrouble(str(error), error.hint) from error


def clean_up_on_hangup() -> None:
    """Let the end of the terminal end the command like Ctrl-C, but not under nohup(1)."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
