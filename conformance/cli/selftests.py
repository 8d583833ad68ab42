"""`uevt selftests`: upstream's tests of user_events on a kernel, beside our cases."""

from __future__ import annotations

import argparse
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from conformance.cli import one_kernel
from conformance.cli.output import print_json
from conformance.results.case_result import CaseResult
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.outcome import Level, Outcome, RunVerdict, failing
from conformance.results.results_json import NAME, read_results
from conformance.session.launch import session
from conformance.session.options import apply_defaults, default_options
from conformance.session.selftests.programs import compile_selftests
from conformance.session.selftests.run import Ran, run_selftests
from conformance.session.target.target import Target, request_of
from host.progress import StreamProgress
from host.temporary_directories import scratch
from host.text import counted, wrapped
from kernels.build.build import ensure, tree_of
from kernels.errors import HostTrouble, UserMistake
from kernels.store.store import Store
from vm.errors import VmError

_PAGE = "docs/selftests.md"


class Row(Struct, frozen=True):
    """An upstream test, and the results of our cases about the same."""

    ran: Ran
    ours: tuple[CaseResult, ...]

    @property
    def deviating(self) -> list[CaseResult]:
        """Those of our cases that deviate, at any level."""
        return [each for each in self.ours if each.outcome in failing(Level.DETAIL)]

    @property
    def agrees(self) -> bool:
        """Whether both found a deviation, or neither; without cases upstream's counts."""
        return bool(self.deviating) == self.ran.failed

    @property
    def explained(self) -> bool:
        """Whether the test fails for a reason other than the kernel."""
        return self.ran.explanation is not None and not self.deviating

    @property
    def verdict(self) -> str:
        """Our outcome, of several the worst."""
        if not self.ours:
            return "no case"
        return str((self.deviating or list(self.ours))[0].outcome)

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        test, alone, explanation = self.ran.test, self.ran.alone, self.ran.explanation
        return {
            "selftest": test.id,
            "result": test.result.value,
            "why": list(test.why),
            "alone": alone and alone.result.value,
            "uevt": self.verdict,
            "cases": {each.id: each.outcome.value for each in self.ours},
            "agrees": self.agrees,
            "explanation": explanation.heading if self.explained and explanation else None,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        test, alone = self.ran.test, self.ran.alone
        cases = ", ".join(self.ran.cases)
        yield from wrapped(f"{test.id:<27} {test.result:<9} {self.verdict:<8} {cases}", hanging=47)
        for line in test.why:
            yield from wrapped(line, indent=4, hanging=4)
        for each in self.deviating:
            yield from wrapped(f"{each.id}: {each.outcome}: {each.reason}", indent=4, hanging=4)
        if alone is not None:
            yield f"    alone in a new guest: {alone.result}"
        if not self.agrees:
            yield f"    disagreement: {self._because()}"

    def _because(self) -> str:
        explanation = self.ran.explanation
        if self.explained and explanation is not None:
            return f"explained in {_PAGE}: {explanation.heading}"
        return "not explained"


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt selftests (--kernel K | --tree DIR) [option …]"
    one_kernel.declare(parser, _perform, images=False)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _perform(arguments: Namespace) -> int:
    """0 if all agree or are explained, else 1, also for a kernel report.  Raises KernelsError."""
    hint = "name --kernel 6.12 or --tree DIR"
    if arguments.kernel is None and arguments.tree is None:
        raise UserMistake("no kernel named", hint)
    one_kernel.refuse_model(arguments, "the model has no source with selftests", hint)
    with one_kernel.resolved(arguments, "tested") as target, scratch() as directory:
        programs = compile_selftests(_tree(arguments), directory, ["-static"])
        try:
            ran, reports = run_selftests(target, programs)
        except VmError as error:
            raise HostTrouble(f"a selftest lost its guest: {error}", error.hint) from error
    ours = _results(arguments, sorted({case for each in ran for case in each.cases}))
    rows = [Row(each, _of(each, ours)) for each in ran]
    if arguments.json:
        print_json([row.to_json() for row in rows])
    else:
        _print(rows, target)
    for each in reports:
        (sys.stderr if arguments.json else sys.stdout).write(f"the kernel reported: {each}\n")
    good = all(row.agrees or row.explained for row in rows) and not any(r.deviating for r in rows)
    return exit_code(Ending.PASS if good and not reports else Ending.UNEXPECTED)


def _print(rows: Sequence[Row], target: Target) -> None:
    head = f"{'selftest':<27} {'upstream':<9} {'uevt':<8} our cases"
    for line in (head, *(line for row in rows for line in row.lines())):
        sys.stdout.write(f"{line}\n")
    failed = sum(row.ran.failed for row in rows)
    apart = [row for row in rows if not row.agrees]
    explained = sum(row.explained for row in apart)
    sys.stdout.write(
        f"uevt: {target.id} ({target.release}): {counted(len(rows), 'selftest')}, {failed} not ok; "
        f"{counted(len(apart), 'disagreement')}, {explained} explained\n"
    )


def _of(ran: Ran, results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    cases = ran.cases
    return tuple(
        each
        for each in results
        if any(each.id == case or each.id.startswith(f"{case}.") for case in cases)
    )


def _tree(arguments: Namespace) -> Path:
    """The source tree of the kernel, without the user's patches.  Raises KernelsError."""
    store, progress = Store(), StreamProgress(sys.stderr)
    entry = request_of(arguments).entry(store, progress)
    return tree_of(entry, store.recipe(ensure(entry, store)), store)


def _results(arguments: Namespace, cases: Sequence[str]) -> tuple[CaseResult, ...]:
    """The results of a run of cases on the same kernel.  Raises HostTrouble."""
    if not cases:
        return ()
    given = {**vars(arguments), "tier": "full", "keyword": " or ".join(cases)}
    options = default_options(**given, quiet=True, guests=None)
    apply_defaults(options)
    with scratch() as directory, tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        out = directory / "run"
        code = session(options, arguments.kernel, str(out), stdout=output, stderr=output)
        if code == exit_code(Ending.INTERRUPTED):
            raise KeyboardInterrupt
        record = read_results(out / NAME) if (out / NAME).exists() else None
        if record is None or record.verdict is RunVerdict.ERROR:
            what = "did not run" if record is None else "have no verdict"
            output.seek(0)
            raise HostTrouble(f"our cases {what}: {output.read().strip()[-500:]}", "")
    return tuple(each for each in record.cases if each.outcome is not Outcome.SKIP)
