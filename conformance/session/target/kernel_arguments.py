"""Check the kernel arguments of --append as the kernel parses them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.errors import UserMistake
from vm.errors import CommandLineTooLong
from vm.qemu.accelerator import Accelerator
from vm.qemu.command_line import MachineSpec, kernel_command_line


def checked_arguments(
    given: Sequence[str], image: Path, accelerator: Accelerator
) -> tuple[str, ...]:
    """All arguments of --append.

    Raises UserMistake for an argument that would swallow those after it, or is too long; VmError
    when the command line cannot be built for another reason.
    """
    for text in given:
        # lib/cmdline.c:next_arg: a double quote begins or ends a quotation; there is no escape.
        if text.count('"') % 2:
            raise UserMistake(
                f"--append {text!r} leaves a quotation open", 'write name="two words"'
            )
        if "--" in text.split():
            what = f"--append {text!r}: what comes after -- is for init"
            raise UserMistake(what, "leave the -- out")
    if given:
        try:
            # Any file as root: a root adds arguments of its own.
            spec = MachineSpec(image, accelerator, append=tuple(given), root=image)
            kernel_command_line(spec)
        except CommandLineTooLong as error:
            raise UserMistake(str(error), error.hint) from error
    return tuple(given)
