"""A guest for programs of the user instead of cases: their root, their start, kernel reports."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from conformance.session.target.machine import boot_deadline, machine_spec, saved_states
from conformance.session.target.target import Target
from host.deadline import Deadline
from host.kernel_reports import HARMLESS
from host.temporary_directories import scratch
from kernels.errors import UserMistake
from vm.kernel_log.reports import Finding
from vm.machine import Machine
from vm.shell import relay
from vm.shell.root import PROGRAMS, Root, root_of

# Directories below / that guests have, of the host or of their own.
_IN_GUESTS = (*PROGRAMS, "dev", "etc", "host", "proc", "run", "sys", "uevt")
_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Variables of the user that programs in the guest see.
_HANDED_ON = ("TERM", "LANG", "LC_ALL", "COLORTERM", "NO_COLOR")
# A kernel with a random base has symbols at other addresses than vmlinux.
_FIXED_BASE = "nokaslr"


def directories_named(command: Sequence[str], work: Path) -> tuple[Path, ...]:
    """The directories of files that a command names by absolute paths, if guests lack them.

    Files of /tmp, which guests have of their own, are named themselves.  ``command`` is a program
    and its arguments, or one word for sh.  Guests have the host's programs, and ``work`` as /host.
    Raises UserMistake for a program whose path leads above ``work``.
    """
    words = list(command) if len(command) > 1 else _words_of(command[0])
    if words and os.path.normpath(words[0]).startswith(".."):
        program = Path(os.path.normpath(work / words[0]))
        inside = program.is_relative_to(work)
        what = f"{words[0]}: the guest has the working directory as /host, and not what is above"
        path = f"./{program.relative_to(work)}" if inside else f"its absolute path: {program}"
        raise UserMistake(what, f"name the program by {path}")
    named = [Path(word) for word in words if word.startswith("/")]
    missing = [each for each in named if each.parts[2:] and each.parts[1] not in _IN_GUESTS]
    # Path.is_file() raises for names that are too long, and in directories without access.
    found = [each for each in missing if os.path.isfile(each)]  # noqa: PTH113
    own = Path("/tmp")
    return tuple(dict.fromkeys(each if each.parent == own else each.parent for each in found))


def _words_of(line: str) -> list[str]:
    """The words of a line for sh; [] for one that shlex does not understand."""
    with suppress(ValueError):
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        return list(words)
    return []


class ProgramGuest(Struct, frozen=True):
    """A running guest in which programs run one after another."""

    machine: Machine
    root: Root
    name: str

    def run(
        self,
        words: Sequence[str],
        *,
        interactive: bool = False,
        descriptors: tuple[int, int, int] = (0, 1, 2),
        deadline: Deadline | None = None,
    ) -> int:
        """Run a program in /host; its exit code.  Raises as `vm.shell.relay.run`.

        Of several, each but the last must read all of its input.
        """
        environment = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        environment |= {"PATH": _SEARCH, "HOME": "/root", "PS1": f"{self.name} \\w # "}
        program = relay.Program(words, environment, interactive)
        return relay.run(self.machine, self.root, program, descriptors, deadline)

    def reports(self) -> list[Finding]:
        """What the kernel has reported on the console since the boot."""
        found = self.machine.console.findings(self.machine.ready_at)
        return [each for each in found if each.kind not in HARMLESS]


@contextmanager
def program_guest(
    target: Target,
    work: Path,
    gdb: Path | None = None,
    tools: Path | None = None,
    more: Sequence[Path] = (),
    cpus: int = 1,
) -> Iterator[ProgramGuest]:
    """A guest with ``work`` as /host and ``tools`` as TOOLS.

    QEMU serves the gdb protocol on the socket ``gdb``.  ``more`` directories are in their own
    places, read-only.  Raises VmError, OSError.
    """
    with root_of(work, tools=tools, more=more) as root, scratch() as directory:
        spec, _ = machine_spec(target, relay.OPENING)
        spec = replace(
            spec,
            cpus=cpus,
            actors=1,
            streams=1,
            exports=root.exports,
            gdb=gdb,
            append=(*spec.append, _FIXED_BASE) if gdb and _moves(target) else spec.append,
        )
        with Machine.boot(
            spec, directory=directory, deadline=boot_deadline(spec), snapshots=saved_states()
        ) as machine:
            yield ProgramGuest(machine, root, target.id)


def _moves(target: Target) -> bool:
    """Whether the kernel may be at a random address."""
    return target.config is None or "CONFIG_RANDOMIZE_BASE=y" in target.config.read_text()
