"""`python -m tests.bench.mutation.selftests`: which mutants upstream's own tests notice.

Mutants and image are those of `tests.bench.mutation`.  Each mutant is judged in a guest by all test
programs of the tree, as kselftest runs them; a mutant is noticed if a test fails that passes
without one, or if the kernel reports something, and again in a new guest: some of the tests fail by
chance.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from conformance.session.program_guest import ProgramGuest, program_guest
from conformance.session.selftests.ktap import Result
from conformance.session.selftests.programs import compile_selftests
from conformance.session.selftests.run import tests_of
from conformance.session.target.target import Target
from host.deadline import Deadline
from host.temporary_directories import scratch
from tests.bench.guests import tree_of
from tests.bench.mutation.image import built, chosen, parser
from tests.bench.mutation.mutants import PARAMETERS
from tests.bench.mutation.spread import spread
from vm.errors import GuestCrashed
from vm.shell.relay import TimedOut

# Seconds to write the parameter.
_CHOICE_S = 60.0


class _Judge:
    """A guest of the image, replaced after each deviation."""

    def __init__(self, target: Target, programs: Sequence[Path]) -> None:
        self._target = target
        self._programs = programs
        self._guest: ProgramGuest | None = None
        self._open = ExitStack()
        self._passed, wrong = self.passed(0)
        if wrong:
            raise SystemExit(f"without a mutant: {wrong}")

    def _choose(self, mutant: int) -> ProgramGuest:
        """A guest in which a mutant acts."""
        if self._guest is None:
            work = self._programs[0].parent
            self._guest = self._open.enter_context(program_guest(self._target, work))
        guest, command = self._guest, f"echo {mutant} >{PARAMETERS}/mutant"
        deadline = Deadline(_CHOICE_S, "choice of a mutant")
        with Path(os.devnull).open("rb") as nothing:
            descriptors = (nothing.fileno(), 1, 2)
            if guest.run(["sh", "-c", command], descriptors=descriptors, deadline=deadline):
                raise SystemExit(f"mutant {mutant} cannot be chosen")
        return guest

    def passed(self, mutant: int) -> tuple[frozenset[str], str]:
        """The tests that pass while a mutant acts, none if it is 0; what else is wrong."""
        try:
            guest = self._choose(mutant)
        except (TimedOut, GuestCrashed):
            # Of the last mutant, which no test noticed.
            self.close()
            guest = self._choose(mutant)
        passed = set()
        try:
            for program in self._programs:
                for test in tests_of(guest, program.name):
                    passed |= {test.id} if test.result is Result.OK else set()
            reports = [each.text for each in guest.reports()]
        except TimedOut:
            reports = ["a program did not end"]
        except GuestCrashed as error:
            reports = [str(error)]
        return frozenset(passed), "; ".join(reports)

    def noticed(self, mutant: int) -> str:
        """The tests that fail because of a mutant, or the reports; "" if nothing does."""
        found = ""
        for _ in range(2):
            passed, report = self.passed(mutant)
            found = ", ".join(sorted(self._passed - passed)) or report
            if not found:
                break
            self.close()
        return found

    def close(self) -> None:
        """End the guest."""
        self._open.close()
        self._guest = None


def _judged(
    target: Target, programs: Sequence[Path], _: Path, share: Sequence[int]
) -> Iterator[dict[str, Any]]:
    judge = _Judge(target, programs)
    try:
        for number in share:
            began = time.monotonic()
            noticed = judge.noticed(number)
            seconds = round(time.monotonic() - began, 2)
            yield {"number": number, "noticed": noticed, "seconds": seconds}
    finally:
        judge.close()


def main() -> int:
    """Judge the mutants and print how many are noticed."""
    options = parser("python -m tests.bench.mutation.selftests").parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mutants, target = built(options.out)
    with scratch() as directory:
        programs = compile_selftests(tree_of("6.12"), directory, ["-static"])
        judged = partial(_judged, target, programs)
        log = options.out / "selftests.jsonl"
        found = list(spread(judged, directory, chosen(options, mutants), log))
    noticed = sum(bool(each["noticed"]) for each in found)
    sys.stdout.write(f"selftests kernel=6.12 mutants={len(found)} noticed={noticed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
