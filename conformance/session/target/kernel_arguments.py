"""Kernel arguments of the user's own: --append as the guest's kernel will read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.errors import UserMistake
from vm.errors import CommandLineTooLong
from vm.qemu.accelerator import Accelerator
from vm.qemu.command_line import MachineSpec, kernel_command_line


class BadArgument(UserMistake):
    """Kernel arguments that cannot be given."""


def checked_arguments(
    given: Sequence[str], image: Path, accelerator: Accelerator
) -> tuple[str, ...]:
    """What --append said, as often as it was given.

    Raises BadArgument for what would take the arguments behind it along, or is too long;
    VmError when the command line cannot be made for another reason.
    """
    for text in given:
        # lib/cmdline.c:next_arg: a double quote begins or ends a quotation, nothing escapes it.
        if text.count('"') % 2:
            raise BadArgument(
                f"--append {text!r} leaves a quotation open", 'write name="two words"'
            )
        if "--" in text.split():
            what = f"--append {text!r}: what comes after -- is for init"
            raise BadArgument(what, "leave the -- out")
    if given:
        try:
            # Any root will do: that there is one has its words too.
            spec = MachineSpec(image, accelerator, append=tuple(given), root=image)
            kernel_command_line(spec)
        except CommandLineTooLong as error:
            raise BadArgument(str(error), error.hint) from error
    return tuple(given)
