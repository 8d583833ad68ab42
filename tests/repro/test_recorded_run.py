"""A failure in one file, run again on other kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.abi.profile import profile_for
from conformance.cases.variants import all_variants
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.recording import record
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.ops import Observation, Open, Operation, ReadFile, Watch
from conformance.ops.race import Race, Track
from conformance.repro.source import Description, c_program
from conformance.results.bundle import VERSION, Bundle, read_bundle
from conformance.results.case_result import CaseResult, Evidence
from conformance.results.errors import ReportError
from conformance.results.multi_format import from_zero
from conformance.results.outcome import Outcome
from conformance.results.recorded_program import RecordedAnswer, RecordedStep
from conformance.runner.model_program import program_of
from conformance.runner.recorded_run import Diverged, RecordedRun
from tests.report.samples import head

CASE = "eprobe.signed_byte"
FIXED, PRESENT = "6.12.117,eprobe-sign=fixed", "6.12.117"


def program(abi: str, case: str = CASE) -> tuple[RecordedStep, ...]:
    """The case as a kernel of an ABI answers it."""
    (variant,) = [each for each in all_variants() if each.id == case]
    return program_of(variant, profile_for(abi))


def replayed(expected: str, kernel: str) -> Diverged | None:
    """The program with the answers of one ABI, on a kernel of another."""
    return RecordedRun(program(expected), ModelExecutor(Model(profile_for(kernel)))).run()


def test_a_kernel_that_answers_as_expected_does_not_diverge() -> None:
    assert replayed(FIXED, FIXED) is None


class Canned(ModelExecutor):
    """A kernel whose files read as these texts, one after another."""

    def __init__(self, *texts: str) -> None:
        super().__init__(Model(profile_for(PRESENT)))
        self._texts = iter(texts)

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        text = next(self._texts).encode()
        return [Observation(len(text), data=text)]


@pytest.mark.parametrize(
    ("texts", "diverged", "other_course"),
    [(("a", "c"), 0, 0), (("a", "d"), 2, 0), (("b", "d"), 2, 1), (("d",), 1, 0)],
)
def test_another_allowed_answer_is_another_course(
    texts: tuple[str, ...], diverged: int, other_course: int
) -> None:
    first, second = step("/t/f", "a"), step("/t/f", "c")
    choice = replace(first, allowed=(RecordedAnswer(1, data=b"b".hex()), *first.allowed))
    run = RecordedRun([choice, second], Canned(*texts))
    found = run.run()
    assert (found.mismatch.step if found else 0, run.other_course) == (diverged, other_course)


def test_a_bundle_is_read_back(tmp_path: Path) -> None:
    evidence = Evidence(program=program(FIXED))
    result = CaseResult(CASE, "eprobe", "quick", Outcome.FAIL, evidence=evidence)
    bundle = Bundle(VERSION, head(), result, "int main(void) { return 0; }\n")
    (tmp_path / "bundle.json").write_text(bundle.text)
    assert read_bundle(tmp_path / "bundle.json") == bundle


def test_a_bundle_needs_a_program() -> None:
    result = CaseResult(CASE, "eprobe", "quick", Outcome.FAIL)
    with pytest.raises(ValueError, match=r"eprobe\.signed_byte has no recorded program"):
        Bundle(VERSION, head(), result)


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    evidence = Evidence(program=program(FIXED))
    result = CaseResult(CASE, "eprobe", "quick", Outcome.FAIL, evidence=evidence)
    path.write_text(Bundle(VERSION, head(), result).text)
    path.write_text(path.read_text().replace('"bundle": 1', '"bundle": 2', 1))
    with pytest.raises(ReportError, match="bundle 2 is of another version"):
        read_bundle(path)


def step(path: str, text: str) -> RecordedStep:
    answer = RecordedAnswer(len(text), data=text.encode().hex())
    return RecordedStep(ReadFile("root", path).encode(), (answer,), answer)


def test_multi_format_events_are_numbered_from_zero() -> None:
    """Their numbers go on from what ran before on the recorded kernel."""
    first, second = step("/t00007_e.1f/id", "t00007_e.1f\n"), step("/t00007_e.2a/id", "other.2a")
    assert from_zero([first, second]) == (
        step("/t00007_e.0/id", "t00007_e.0\n"),
        step("/t00007_e.b/id", "other.2a"),
    )
    assert from_zero([step("/t00007_e/id", "")]) == (step("/t00007_e/id", ""),)


def test_multi_format_events_of_a_race_are_numbered_from_zero() -> None:
    def racing(path: str) -> RecordedStep:
        track = Track("p1", (Open("p1", 4, path, 0),))
        return RecordedStep(Race("p1", (track,)).encode())

    assert from_zero([racing("/t00007_e.1f/enable")]) == (racing("/t00007_e.0/enable"),)


class Lost(ModelExecutor):
    """A kernel that crashes in its third batch."""

    batches = 0

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        self.batches += 1
        if self.batches == 3:
            raise ConnectionError("the guest is gone")
        return super().execute(operations, watches)


def test_the_operations_of_a_crash_are_recorded_without_an_answer() -> None:
    profile = profile_for(PRESENT)
    lockstep = Lockstep(Model(profile), Lost(Model(profile)))
    ue = UserEvents(lockstep)
    with pytest.raises(ConnectionError):
        ue.event("u8 a", enabled=True).write(b"\1")
    *answered, last = record(lockstep)
    assert all(step.seen for step in answered[:8])
    assert (last.seen, last.allowed) == (None, ())
    about = Description("write.x", "A write crashes.", "", "6.12")
    assert "/* This kernel did not answer. */" in c_program((*answered, last), profile, about)
