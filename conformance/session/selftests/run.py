"""Run upstream's test programs in a guest, and each failed test again alone in a new one."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from conformance.session.program_guest import ProgramGuest, program_guest
from conformance.session.selftests.counterparts import COUNTERPARTS, EXPLANATIONS, Explanation
from conformance.session.selftests.ktap import NOT_BEGUN, Result, Selftest, read_selftests
from conformance.session.target.target import Target
from host.deadline import Deadline
from vm.errors import GuestCrashed
from vm.shell.relay import TimedOut

# Seconds of a program on an idle machine with KVM; without, five times as many.
_PROGRAM_S = 12.0
_FAILED = (Result.NOT_OK, Result.NONE)


class Ran(Struct, frozen=True):
    """An upstream test, and for a failed one what it does alone in a new guest."""

    test: Selftest
    alone: Selftest | None = None

    @property
    def failed(self) -> bool:
        """Whether it did not pass."""
        return self.test.result in _FAILED

    @property
    def cases(self) -> tuple[str, ...]:
        """Our cases about the same: ids of functions."""
        return COUNTERPARTS.get(self.test.id, ())

    @property
    def explanation(self) -> Explanation | None:
        """What explains a failure on a correct kernel, if it applies to this one."""
        return next((each for each in EXPLANATIONS if self.failed and self._is(each)), None)

    def _is(self, explanation: Explanation) -> bool:
        if explanation.alone:
            return self.alone is not None and self.alone.result is Result.OK
        return any(re.search(explanation.pattern, line) for line in self.test.why)


def run_selftests(target: Target, programs: Sequence[Path]) -> tuple[list[Ran], list[str]]:
    """Run the programs one after another in one guest, as kselftest does; with kernel reports.

    After a program that does not end, the others run in a new one.  They lie in one directory,
    which is /host.  Raises VmError, OSError.
    """
    directory = programs[0].parent
    reports: list[str] = []
    tests = _in_guest(target, directory, [(each.name,) for each in programs], reports)
    return [Ran(test, _alone(target, directory, test, reports)) for test in tests], reports


def _alone(target: Target, directory: Path, test: Selftest, reports: list[str]) -> Selftest | None:
    """A failed test alone; None for others, and if the program cannot select a test."""
    if test.result not in _FAILED or test.name == NOT_BEGUN:
        return None
    found = _in_guest(target, directory, [(test.program, "-t", test.name)], reports)
    return found[0] if [each.name for each in found] == [test.name] else None


def _in_guest(
    target: Target, directory: Path, commands: Sequence[Sequence[str]], reports: list[str]
) -> list[Selftest]:
    """The tests of programs until the guest crashes; ``reports`` gets the kernel's.

    All are in one guest, but for those after a program that does not end.
    """
    tests: list[Selftest] = []
    left = list(commands)
    while left:
        try:
            with program_guest(target, directory) as guest:
                # One by one: those before a crash count.
                for test in _until_one_hangs(guest, left):
                    tests.append(test)
                reports += [each.text for each in guest.reports()]
        except GuestCrashed as error:
            reports.append(str(error))
            break
    return tests


def _until_one_hangs(guest: ProgramGuest, left: list[Sequence[str]]) -> Iterator[Selftest]:
    """The tests of programs, which are taken from ``left``, up to one that does not end."""
    with suppress(TimedOut):
        while left:
            yield from tests_of(guest, *left.pop(0))


def tests_of(guest: ProgramGuest, program: str, *options: str) -> Iterator[Selftest]:
    """The tests of a program; one that does not end has tests without a result.

    Raises TimedOut and GuestCrashed after them: no other program can run in the guest.
    """
    slowness = guest.machine.slowness
    deadline = Deadline(_PROGRAM_S * slowness, f"end of {program}")
    with tempfile.TemporaryFile() as output, Path(os.devnull).open("rb") as nothing:
        descriptors = (nothing.fileno(), output.fileno(), output.fileno())
        lost: TimedOut | GuestCrashed | None = None
        try:
            guest.run([f"./{program}", *options], descriptors=descriptors, deadline=deadline)
        except (TimedOut, GuestCrashed) as error:
            lost = error
        output.seek(0)
        yield from read_selftests(program, output.read().decode(errors="replace"))
    if lost is not None:
        raise lost
