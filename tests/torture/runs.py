"""One disturbed run: start it, time its faults, and check its results."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, field

from conformance.results.outcome import Blame, Outcome
from conformance.results.replay import read_journal
from tests.drills import provoke
from tests.faults import Fault, Verdict
from tests.torture.place import Place
from tests.torture.plugin import Plan, Strike

KERNEL = "6.12"
# Quick cases of several surfaces, some of which wait for the kernel.
FOLDERS = ("registration", "status", "enable", "delete")
KEYWORD = "registration. or delete. or status. or enable."
WORKERS = ("gw0", "gw1")
# Cases of a worker between two faults, at least: see the plugin.
APART = 3
# Approximate calls of a case.
_CALLS = 30
_MOST_MS = 30
# In KiB; enough for an undisturbed run.
_DISK_KIB = 8192
_LIMIT_S = 900.0
# uevt's exit code for a run without a verdict, and for host trouble.
_NO_VERDICT = 3


class Report(Struct):
    """The mistakes of a disturbed run, as sentences by kind.

    ``faults`` are those that were injected: a killed worker receives no other.
    """

    faults: tuple[Fault, ...]
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    blamed: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """All mistakes."""
        return [*self.lost, *self.blamed, *self.leaked, *self.late]


class Undisturbed(Struct, frozen=True):
    """An undisturbed run: verdicts of its cases, and its duration."""

    cases: Mapping[str, Verdict]
    seconds: float


class RunSeries:
    """Consecutive runs of one selection of cases."""

    def __init__(self, place: Place, module: Path) -> None:
        self._place = place
        self._module = module
        self._number = 0

    def undisturbed(self) -> Undisturbed:
        """The second of two undisturbed runs; the first saves the guest's state.

        Raises RuntimeError if anything is wrong.
        """
        for _ in range(2):
            out = self._next()
            began = time.monotonic()
            code = self._start(out, self._plan(()), "--out")
            seconds = time.monotonic() - began
            if code != 0:
                raise RuntimeError(f"undisturbed run: exit code {code}: {self._output()}")
        if left := self._place.left(out):
            raise RuntimeError(f"undisturbed run left {left}")
        return Undisturbed(_cases(out), seconds)

    def disturbed(self, faults: Sequence[Fault], by: Undisturbed, random: Random) -> Report:
        """Disturb one run and check its results."""
        report = Report(tuple(faults))
        out = self._next()
        plan = self._plan(_strikes(faults, len(by.cases) // len(WORKERS), random))
        full = [fault for fault in faults if fault.name == "disk-full"]
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            if full:
                stack.enter_context(provoke.small_disk(out, _DISK_KIB))
            self._start(out, plan, "--out", random.uniform(0, by.seconds) if full else None)
            report.seconds = time.monotonic() - began
            limit = 3 * by.seconds + sum(fault.allowance_s for fault in faults)
            if report.seconds > limit:
                report.late.append(f"{report.seconds:.0f} s, undisturbed {by.seconds:.0f} s")
            if any(fault.ends for fault in faults):
                self._resume(out, by, report)
            windows = _windows(_lines(plan.diary), faults)
            report.faults = tuple(fault for fault, _ in windows)
            self._judge(out, by, report, windows)
            report.leaked += self._place.left(out)
        if not report.wrong:
            shutil.rmtree(out, ignore_errors=True)
        return report

    def _resume(self, out: Path, by: Undisturbed, report: Report) -> None:
        """Resume a run that a fault ended; recorded results must stand."""
        report.leaked += self._place.left()
        (out / "ballast").unlink(missing_ok=True)
        allowed = {verdict for fault in report.faults for verdict in (*fault.stands, *fault.first)}
        if (out / "journal.jsonl").exists():
            for each in read_journal(out / "journal.jsonl").results.values():
                found = (each.outcome, each.blame)
                if found != by.cases.get(each.id) and found not in allowed:
                    report.blamed.append(f"{each.id} ended with {' '.join(found)} in the journal")
        # A run that had already ended without a verdict has none when resumed.
        fine = {0, _NO_VERDICT} if any(fault.stands for fault in report.faults) else {0}
        if (code := self._start(out, self._plan(()), "--resume")) not in fine:
            report.lost.append(f"the resumed run ended with {code}: {self._output()}")

    def _judge(
        self,
        out: Path,
        by: Undisturbed,
        report: Report,
        windows: Sequence[tuple[Fault, set[str]]],
    ) -> None:
        """Compare a run with the undisturbed one."""
        try:
            found, reruns = _cases(out), _reruns(out)
        except (OSError, ValueError, AssertionError) as error:
            report.lost.append(f"{error}: {self._output()}")
            return
        report.lost += [f"{case} has no result" for case in by.cases.keys() - found.keys()]
        for case, verdict in found.items():
            if verdict == by.cases.get(case):
                continue
            if case in by.cases:
                fitting = [f for f, near in windows if case in near and verdict in f.stands]
            else:
                # Between two cases, or in the final checks, which are not run again.
                fitting = [f for f, _ in windows if verdict in (*f.stands, *f.first)]
            if not fitting:
                report.blamed.append(f"{case} ended with {' '.join(verdict)}")
        for case, first in reruns.items():
            if not any(case in near and first in fault.first for fault, near in windows):
                report.blamed.append(
                    f"{case} was run twice; the first attempt was {' '.join(first)}"
                )

    def _next(self) -> Path:
        self._number += 1
        return self._place.directory / f"out-{self._number}"

    def _plan(self, strikes: tuple[Strike, ...]) -> Plan:
        diary = self._place.directory / f"diary-{self._number}"
        return Plan(strikes, diary, self._module)

    def _start(self, out: Path, plan: Plan, option: str, fill_after_s: float | None = None) -> int:
        argv = ["-m", "pytest", *(f"conformance/cases/{name}" for name in FOLDERS)]
        for plugin in ("cacheprovider", "terminalreporter", "hypothesispytest", "tmpdir"):
            argv += ["-p", f"no:{plugin}"]
        argv += ["--tb=no", f"--kernel={KERNEL}", "--guests=2"]
        argv += [f"-k{KEYWORD}", f"{option}={out}"]
        with self._place.start(argv, plan.to_environment()) as process:
            if fill_after_s is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(fill_after_s)
                provoke.fill(out)
            try:
                return process.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return -1

    def _output(self) -> str:
        return self._place.output.read_text(errors="replace").strip()[-400:]


def _strikes(faults: Sequence[Fault], cases: int, random: Random) -> tuple[Strike, ...]:
    """Time the faults, far enough apart within a worker."""
    turns = [(worker, case) for case in range(1, cases - 1, APART) for worker in WORKERS]
    chosen = sorted(random.sample(turns, min(len(faults), len(turns))), key=lambda turn: turn[1])
    # A killed worker receives no further fault.
    order = sorted(faults, key=lambda fault: fault.name == "worker-killed")
    return tuple(
        Strike(
            fault.name,
            worker,
            case + random.randrange(2),
            random.randrange(1, _CALLS),
            random.randrange(_MOST_MS),
            random.getrandbits(32),
        )
        for fault, (worker, case) in zip(order, chosen, strict=False)
        if fault.name != "disk-full"
    )


def _windows(
    lines: Sequence[Mapping[str, Any]], faults: Sequence[Fault]
) -> list[tuple[Fault, set[str]]]:
    """The cases that each fault may have hit: the running one, and the next of its worker.

    Also those that began before the fault took effect.  A full disk may hit every case.
    """
    by_name = {fault.name: fault for fault in faults}
    everywhere = {line["case"] for line in lines}
    found = [(fault, everywhere) for fault in faults if fault.name == "disk-full"]
    for at, line in enumerate(lines):
        if line["what"] == "strikes":
            after = [
                later
                for later in lines[at:]
                if later["what"] == "begins" and later["worker"] == line["worker"]
            ]
            hit = [each["case"] for each in after if each["at"] <= line["latest"]]
            near = {line["case"], *hit, *(each["case"] for each in after[:1])}
            found.append((by_name[line["fault"]], near))
    return found


def _cases(out: Path) -> dict[str, Verdict]:
    """Outcome and blame by case; a case has one result."""
    cases = _results(out)
    found = {each["id"]: (Outcome(each["outcome"]), Blame(each["blame"])) for each in cases}
    assert len(found) == len(cases), "a case has two results"
    return found


def _reruns(out: Path) -> dict[str, Verdict]:
    """Verdicts of first attempts whose rerun stands."""
    return {
        each["id"]: (Outcome(each["rerun"]["outcome"]), Blame(each["rerun"]["blame"]))
        for each in _results(out)
        if each["rerun"] is not None and each["rerun"]["of"] == "first"
    }


def _results(out: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((out / "results.json").read_text())["cases"]
    return cases


def _lines(diary: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in diary.read_text().splitlines()]
    except OSError:
        return []
