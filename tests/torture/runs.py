"""One disturbed run: how it is started, when it is disturbed, and what was wrong with it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from conformance.outcome import Blame, Outcome
from conformance.report.replay import read_journal
from tests.drills import provoke
from tests.torture.faults import Fault, Verdict
from tests.torture.place import Place
from tests.torture.plugin import VARIABLE, Plan

KERNEL = "6.12"
# Quick cases of three surfaces, among them some that wait for the kernel.
FILES = ("registration", "delete", "status")
KEYWORD = "registration.order or registration.bit or delete. or status."
_WORKERS = ("gw0", "gw1")
# A small disk, in KiB: enough for an undisturbed run.
_DISK_KIB = 4096
_LIMIT_S = 600.0


@dataclass(slots=True)
class Report:
    """What one fault came to; ``wrong`` are sentences by kind of mistake."""

    fault: Fault
    hit: str = ""
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    blamed: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.lost or self.blamed or self.leaked or self.late)


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A run that nobody disturbs: what its cases end with, how long it and its processes take."""

    cases: Mapping[str, Verdict]
    seconds: float
    calls: Mapping[str, int]


class Runs:
    """Runs of one selection of cases, one after the other."""

    def __init__(self, place: Place, module: Path) -> None:
        self._place = place
        self._module = module
        self._number = 0

    def undisturbed(self) -> Undisturbed:
        """The second of two runs: the first saves the state of a guest."""
        for _ in range(2):
            out = self._next()
            diary = self._place.directory / "diary"
            diary.unlink(missing_ok=True)
            plan = Plan("", "", 0, 0, 0, str(diary))
            began = time.monotonic()
            code = self._run(out, plan, None)
            seconds = time.monotonic() - began
            if code != 0:
                raise RuntimeError(f"undisturbed, and exit code {code}: {self._said()}")
        calls = {line["worker"]: line["calls"] for line in _lines(diary) if line["what"] == "calls"}
        return Undisturbed(_cases(out), seconds, calls)

    def disturbed(self, fault: Fault, by: Undisturbed, random: Random) -> Report:
        """Disturb one run and look at what became of it."""
        report = Report(fault)
        out = self._next()
        diary = self._place.directory / "diary"
        diary.unlink(missing_ok=True)
        worker = random.choice(_WORKERS)
        plan = Plan(
            fault.name,
            worker,
            random.randrange(1, max(2, by.calls.get(worker, 2))),
            random.randrange(30),
            random.getrandbits(32),
            str(diary),
            str(self._module) if fault.module else "",
        )
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            if fault.name == "disk-full":
                stack.enter_context(provoke.small_disk(out, _DISK_KIB))
            self._run(
                out, plan, random.uniform(0, by.seconds) if fault.name == "disk-full" else None
            )
            report.seconds = time.monotonic() - began
            if report.seconds > 3 * by.seconds + fault.allowance_s:
                report.late.append(f"{report.seconds:.1f} s, undisturbed {by.seconds:.1f} s")
            if fault.ends:
                self._go_on(out, by, report)
            lines = _lines(diary)
            report.hit = next((line["case"] for line in lines if line["what"] == "disturbed"), "")
            self._judge(out, by, report, lines)
        report.leaked += self._place.left(out)
        if report.good:
            shutil.rmtree(out, ignore_errors=True)
        return report

    def _go_on(self, out: Path, by: Undisturbed, report: Report) -> None:
        """Complete a run whose end the fault was, if it was; what it had recorded has to stand."""
        report.leaked += self._place.left()
        journal = out / "journal.jsonl"
        if journal.exists():
            # What a killed writer, or a full disk, has torn is the last line.
            before = read_journal(journal).results
            report.blamed += [
                f"{each.id}: journal has {each.outcome}"
                for each in before.values()
                if (each.outcome, each.blame) != by.cases.get(each.id)
                and (each.outcome, each.blame) not in report.fault.first
            ]
        (out / "ballast").unlink(missing_ok=True)
        code = self._start(out, {}, "--resume")
        if code:
            report.lost.append(f"going on ended with {code}: {self._said()}")

    def _judge(
        self, out: Path, by: Undisturbed, report: Report, lines: list[dict[str, Any]]
    ) -> None:
        """Compare a run with the undisturbed one."""
        try:
            found, reruns = _cases(out), _reruns(out)
        except (OSError, ValueError, AssertionError) as error:
            report.lost.append(f"{error}: {self._said()}")
            return
        report.lost += [f"{case} has no result" for case in by.cases.keys() - found.keys()]
        may_be_hit = _near(lines)
        wrong = [case for case in by.cases if found.get(case, by.cases[case]) != by.cases[case]]
        for case in wrong:
            if found[case] not in report.fault.stands:
                report.blamed.append(f"{case} ended with {' '.join(found[case])}")
            elif case not in may_be_hit:
                report.blamed.append(f"{case} was not hit and ended with {' '.join(found[case])}")
        if len(wrong) > 1:
            report.blamed.append(f"{len(wrong)} cases were hit by one fault")
        report.blamed += [
            f"{case} was run twice, the first time {' '.join(first)}"
            for case, first in reruns.items()
            if first not in report.fault.first
        ]

    def _next(self) -> Path:
        self._number += 1
        return self._place.directory / f"out-{self._number}"

    def _run(self, out: Path, plan: Plan, fill_after_s: float | None) -> int:
        environment = {"PYTEST_PLUGINS": "tests.torture.plugin", VARIABLE: plan.to_environment()}
        return self._start(out, environment, "--out", fill_after_s)

    def _start(
        self,
        out: Path,
        environment: Mapping[str, str],
        option: str,
        fill_after_s: float | None = None,
    ) -> int:
        argv = ["-m", "pytest", *(f"conformance/cases/test_{name}.py" for name in FILES)]
        argv += ["-p", "no:cacheprovider", "-p", "no:terminalreporter", "--tb=no"]
        argv += [
            "-p",
            "no:hypothesispytest",
            "-p",
            "no:tmpdir",
            f"--kernel={KERNEL}",
            "-n2",
            "--dist=worksteal",
        ]
        argv += [f"-k{KEYWORD}", f"{option}={out}"]
        with self._place.start(argv, environment) as process:
            if fill_after_s is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(fill_after_s)
                provoke.fill(out)
            try:
                return process.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return -1

    def _said(self) -> str:
        return self._place.said.read_text(errors="replace").strip()[-400:]


def _cases(out: Path) -> dict[str, Verdict]:
    """Outcome and blame of each case; of each there is one result."""
    cases = json.loads((out / "results.json").read_text())["cases"]
    found = {each["id"]: (Outcome(each["outcome"]), Blame(each["blame"])) for each in cases}
    assert len(found) == len(cases), "a case has two results"
    return found


def _reruns(out: Path) -> dict[str, Verdict]:
    """What the first runs of cases came to that were run twice and whose second stands."""
    cases = json.loads((out / "results.json").read_text())["cases"]
    return {
        each["id"]: (Outcome(each["rerun"]["outcome"]), Blame(each["rerun"]["blame"]))
        for each in cases
        if each["rerun"] is not None and each["rerun"]["of"] == "first"
    }


def _near(lines: list[dict[str, Any]]) -> set[str]:
    """The cases that a fault can have hit: the one that ran, and the next of its process."""
    near: set[str] = set()
    disturbed = ""
    for line in lines:
        if line["what"] == "disturbed":
            disturbed = line["worker"]
            near.add(line["case"])
        elif line["what"] == "begins" and line["worker"] == disturbed and len(near) < 2:
            near.add(line["case"])
    return near


def _lines(diary: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in diary.read_text().splitlines()]
    except OSError:
        return []
