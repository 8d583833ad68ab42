"""Run cases on a guest, and record the operations and the answers of those that pass."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from conformance.abi.profile import profile_for
from conformance.abi.switches import BY_NAME
from conformance.cases.variants import Variant, all_variants
from conformance.client.executor import Deadline, Executor
from conformance.ops import Observation, Operation, Watch
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome
from conformance.session.options import apply_defaults, default_options
from conformance.session.ordering import CaseHistory, ordered
from conformance.session.target.target import Target, resolve
from conformance.session.worker.worker import Worker
from tests.bench.adequacy.replay import Answered, Recording, variants_by_id
from tests.bench.fixes import PATCHES

# 6.12 with all patches of fixtures/fixes.
FIXED = "6.12+fixes"


class Recordings(Struct, frozen=True):
    """The recordings of a kernel, each pickled, by the id of the variant; why others have none."""

    abi: str
    release: str
    cases: Mapping[str, bytes]
    without: Mapping[str, str]


class Recorder:
    """An executor that notes what another answers."""

    def __init__(self, executor: Executor) -> None:
        self.answers: list[Answered] = []
        self._executor = executor
        self._again = False

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """Perform operations."""
        observations = self._executor.execute(operations, watches)
        again, self._again = self._again, False
        for operation, seen in zip(operations, observations, strict=True):
            self.answers.append(Answered(operation, seen, again))
        return observations

    def deadline(self, seconds: float, what: str) -> Deadline:
        """The deadline of the other."""
        return self._executor.deadline(seconds, what)

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little; the next operation is a repetition."""
        self._again = True
        self._executor.pause(deadline)


def performed(worker: Worker, variant: Variant) -> tuple[CaseResult, Recording | None]:
    """The result of a variant on the guest of a worker, and its recording if it began."""
    made: list[Recording] = []

    def attempt() -> BaseException | None:
        try:
            ue = worker.begin()
            recorder = Recorder(ue.lockstep._executor)
            ue.lockstep._executor = recorder
            multi_id = ue.lockstep.model.world.table.multi_id
            made[:] = [Recording(worker._runner._serial, multi_id, recorder.answers)]
            variant.function(ue, **variant.arguments)
            ue.lockstep.run()
        except Exception as error:
            return error
        return None

    worker._case = (variant.case, variant.id)
    result = worker._once(variant.case, variant.id, attempt)
    return result, made[0] if made else None


def _target(kernel: str, switch: str = "") -> Target:
    """A kernel of the catalog or FIXED, to be judged with a switch flipped."""
    fixes = sorted(PATCHES.glob("*.patch")) if kernel == FIXED else []
    options = default_options(kernel=kernel.removesuffix("+fixes"), patch=list(map(str, fixes)))
    apply_defaults(options)
    target = resolve(options)
    abi = ",".join([target.abi, *(f"{fix.stem}=fixed" for fix in fixes)])
    if switch:
        on, off = ("fixed", "present") if BY_NAME[switch].bug else ("yes", "no")
        abi += f",{switch}={off if profile_for(abi, base=target.release).has(switch) else on}"
    return replace(target, abi=abi)


def record(kernel: str, directory: Path) -> Recordings:
    """Record all cases of a kernel on one guest at a time."""
    target = _target(kernel)
    chosen = [each for each in all_variants() if each.case.applies(target.profile)]
    cases, without = {}, {}
    with closing(Worker(target, directory)) as worker:
        for variant in ordered(chosen, lambda each: (each.case, each.id), CaseHistory({})):
            result, recording = performed(worker, variant)
            # A kernel report leaves the answers as they are.
            wrong = {each.field for each in result.mismatches} - {"console"}
            if (
                recording is not None
                and not wrong
                and result.outcome in (Outcome.PASS, Outcome.FAIL)
            ):
                cases[variant.id] = pickle.dumps(recording)
            else:
                without[variant.id] = f"{result.outcome}: {result.reason}"
    return Recordings(target.abi, target.release, cases, without)


def fails_on(
    kernel: str, case_ids: Sequence[str], switch: str, directory: Path
) -> CaseResult | None:
    """The result of the first of some cases that does not pass on a guest."""
    target = _target(kernel, switch)
    directory.mkdir(parents=True)
    with closing(Worker(target, directory)) as worker:
        for case_id in case_ids:
            result, _ = performed(worker, variants_by_id()[case_id])
            if result.outcome not in (Outcome.PASS, Outcome.SKIP):
                return result
    return None
