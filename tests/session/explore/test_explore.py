"""Random programs: their choices, their shrinking, their text, and the explorer on two models."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import Mock

import pytest

from conformance.abi.profile import Profile, profile_for
from conformance.abi.uapi import DIAG_IOCSUNREG
from conformance.cases.case import Case
from conformance.cli import explore as command
from conformance.cli import one_kernel
from conformance.cli.explore import IMPORTS, _summary
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.errors import ModelError
from conformance.model.machine import Model
from conformance.model.state.world import Release
from conformance.ops import Ioctl, Observation, Operation, Watch
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Blame, Outcome
from conformance.runner.process_pool import MOST_ACTORS
from conformance.session.explore import exploration
from conformance.session.explore.call_log import LoggedObject
from conformance.session.explore.choices import Actions, Choices
from conformance.session.explore.corpus import Corpus, answers
from conformance.session.explore.exploration import Exploration, Plan, explore
from conformance.session.explore.explorer import Counts, Explorer, Played, shrink
from conformance.session.explore.scene import Crowded, Scene
from conformance.session.explore.vocabulary import ENDING, walk
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker
from tests.report.samples import case as sample

PROFILE = profile_for("6.12.117")
LENGTH = 20


def against(kernel: Profile, model: Model | None = None) -> Lockstep:
    """Lock step with a model as the kernel."""
    return Lockstep(model or Model(PROFILE), ModelExecutor(Model(kernel), eager=True))


def walked(
    profile: Profile, seed: object, kernel: Profile | None = None
) -> tuple[Lockstep, list[str]]:
    """A program of a seed, with a model as the kernel."""
    lockstep = against(kernel or profile, Model(profile))
    lines: list[str] = []
    with suppress(ModelError):
        walk(UserEvents(lockstep), Choices(Random(f"{seed}"), (), LENGTH, ENDING), lines)
        lockstep.run()
    return lockstep, lines


@pytest.mark.parametrize("abi", ["5.19", "6.1.192", "6.4", "6.12.117", "7.3"])
def test_the_model_agrees_with_itself_on_every_program(abi: str) -> None:
    programs = [walked(profile_for(abi), seed)[0] for seed in range(12)]
    assert [each.mismatches for each in programs if each.mismatches] == []
    assert sum(len(each.steps) for each in programs) > 1000


def test_a_seed_makes_the_same_program_again() -> None:
    one, other = walked(PROFILE, 1)[0], walked(PROFILE, 1)[0]
    assert one.program == other.program
    assert one.program != walked(PROFILE, 2)[0].program


def test_recorded_choices_make_the_same_program() -> None:
    made = Choices(Random("x"), (), LENGTH, ENDING)
    lockstep, again = against(PROFILE), against(PROFILE)
    walk(UserEvents(lockstep), made, [])
    walk(UserEvents(again), Choices(Random("y"), made.actions), [])
    assert again.program == lockstep.program


@pytest.mark.parametrize("seed", range(8))
def test_the_text_of_a_program_is_the_program(seed: int) -> None:
    lockstep, lines = walked(PROFILE, seed)
    spoken = against(PROFILE)
    with suppress(ModelError):
        exec("\n".join([*IMPORTS.splitlines(), *lines]), {"ue": UserEvents(spoken)})
        spoken.run()
    assert spoken.program == lockstep.program


def test_a_program_is_shrunk_to_what_shows_the_difference() -> None:
    actions: Actions = tuple((kind, 5, 7) for kind in (1, 2, 3, 4, 5, 6, 7))

    def shows(tried: Actions) -> bool:
        kinds = [action[0] for action in tried]
        return {3, 6} <= set(kinds) and any(action[:1] == (6,) and action[2] for action in tried)

    assert shrink(actions, shows, 200) == ((3, 0, 0), (6, 0, 7))


def test_shrinking_ends() -> None:
    tried = 0

    def shows(actions: Actions) -> bool:
        nonlocal tried
        tried += 1
        return True

    shrink(tuple((1, 1) for _ in range(500)), shows, 20)
    assert tried <= 20


def test_the_corpus_keeps_what_is_new(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "explore" / "6.12.json")
    reached = answers(walked(PROFILE, 1)[0].steps)
    assert corpus.read() == []
    assert corpus.add(((1, 2), (3,)), reached)
    assert not corpus.add(((4,),), reached)
    corpus.write()
    assert Corpus(tmp_path / "explore" / "6.12.json").read() == [((1, 2), (3,))]


def test_a_program_has_no_more_processes_than_a_guest() -> None:
    """The process that drives tasks outlives them."""
    lockstep = Lockstep(Model(PROFILE), ModelExecutor(Model(PROFILE)))
    user_events = UserEvents(lockstep)
    scene = Scene(LoggedObject(user_events, "ue", [], user_events.prefix), Choices(Random(1), ()))
    for _ in range(MOST_ACTORS - 1):
        scene.task().kill()
    with pytest.raises(Crowded):
        scene.task()


def test_the_corpus_keeps_what_did_not_pass_again(tmp_path: Path) -> None:
    """An exploration that ends early, or on a kernel that diverges, loses nothing."""
    file = tmp_path / "6.12.json"
    file.write_text('{"format": 2, "programs": [[[1]], [[2]], [[3]], [[4]]]}')
    corpus = Corpus(file)
    first, second, *_ = corpus.read()
    for program in (first, second):
        corpus.passed(program)
        corpus.add(program, {("what both reach",)})
    corpus.write()
    assert Corpus(file).read() == [((1,),), ((3,),), ((4,),)]


def test_explorations_side_by_side_keep_what_both_found(tmp_path: Path) -> None:
    file = tmp_path / "6.12.json"
    file.write_text('{"format": 2, "programs": [[[1]], [[2]]]}')
    one, other = Corpus(file), Corpus(file)
    for number, corpus in enumerate((one, other)):
        first, *_ = corpus.read()
        corpus.passed(first)
        corpus.add(((3 + number,),), {(number,)})
    one.write()
    other.write()
    assert Corpus(file).read() == [((4,),), ((2,),), ((3,),)]


def test_an_exploration_that_ends_early_keeps_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replay_one(plan: Plan, _: Path, number: int, of: int, parent: Connection) -> None:
        parent.send(exploration._Said(Counts(), [], [], [plan.kept[number]], ended=True))

    monkeypatch.setattr(exploration, "_explore", replay_one)
    file = tmp_path / "6.12.json"
    file.write_text('{"format": 2, "programs": [[[1]], [[2]], [[3]]]}')
    corpus = Corpus(file)
    plan = Plan(cast(Target, None), "seed", None, 2, corpus.read())
    explore(plan, tmp_path, corpus, 2, Exploration(), lambda _: None)
    corpus.write()
    assert Corpus(file).read() == [((3,),)]


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "programs": [[[1]]]}'])
def test_a_damaged_corpus_is_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    assert Corpus(tmp_path / "c.json").read() == []


class Leaking(ModelExecutor):
    """A kernel that keeps the reference of a registration that is undone."""

    def __init__(self, kernel: Profile) -> None:
        super().__init__(Model(kernel), eager=True)

    def _perform(self, operation: Operation, watches: Sequence[Watch]) -> Observation:
        seen = super()._perform(operation, watches)
        if isinstance(operation, Ioctl) and operation.request == DIAG_IOCSUNREG and seen.ok:
            for each in self._model.world.pending:
                if isinstance(each, Release):
                    self._model.world.event(each.event).references += 1
        return seen


class ModelWorker:
    """A worker whose kernel is the model of another profile."""

    def __init__(self, kernel: Profile, executor: type[Leaking] | None = None) -> None:
        self._kernel = kernel
        self._executor = executor
        self._lockstep: Lockstep | None = None
        self.others: list[CaseResult] = []

    def begin(self) -> UserEvents:
        self._lockstep = against(self._kernel)
        if self._executor is not None:
            self._lockstep = Lockstep(Model(PROFILE), self._executor(self._kernel))
        return UserEvents(self._lockstep)

    def run(
        self, case: Case, case_id: str, attempt: Callable[[], BaseException | None]
    ) -> tuple[CaseResult, None]:
        error = attempt()
        assert self._lockstep is not None
        evidence = Evidence(tuple(map(str, range(len(self._lockstep.steps)))))
        facts: dict[str, Any] = {"reason": str(error or ""), "evidence": evidence}
        if isinstance(error, ModelError):
            return sample(case_id, Outcome.ERROR, blame=Blame.MODEL, **facts), None
        if self._lockstep.mismatches:
            step = self._lockstep.mismatches[0]
            found = step.differences[0]
            mismatch = Mismatch(step.number, found.field, found.allowed, found.observed)
            return sample(case_id, Outcome.FAIL, mismatches=(mismatch,), **facts), None
        if error is not None:
            raise error
        return sample(case_id, **facts), None

    def take_other_results(self) -> list[CaseResult]:
        taken, self.others = self.others, []
        return taken

    def finish(self) -> None:
        self.others.append(sample("end.report", Outcome.FAIL))

    def close(self) -> None:
        """Nothing is open."""


def explorer_of(worker: Worker, tmp_path: Path, found: list[Played]) -> Explorer:
    take, ignore = found.append, lambda _: None
    return Explorer(worker, lambda _: worker, tmp_path, PROFILE, "seed", take, ignore)


def explored(
    kernel: Profile, tmp_path: Path, programs: int, executor: type[Leaking] | None = None
) -> list[Played]:
    found: list[Played] = []
    worker = cast(Worker, ModelWorker(kernel, executor))
    explorer = explorer_of(worker, tmp_path, found)
    for _ in range(programs):
        explorer.invent()
    assert explorer.counts.programs == programs
    return found


def test_a_kernel_as_the_model_does_not_diverge(tmp_path: Path) -> None:
    assert explored(PROFILE, tmp_path, 40) == []


def test_a_kernel_of_another_abi_diverges_in_a_short_program(tmp_path: Path) -> None:
    """The programs that are left need few actions."""
    found = explored(profile_for("6.12.117,persist=no"), tmp_path, 40)
    assert found
    assert min(len(each.actions) for each in found) <= 3
    assert all(each.result.outcome is Outcome.FAIL for each in found)


def test_a_report_after_the_last_program_is_found(tmp_path: Path) -> None:
    found: list[Played] = []
    worker = cast(Worker, ModelWorker(PROFILE))
    explorer = explorer_of(worker, tmp_path, found)
    explorer.invent()
    assert found == []
    explorer.finish()
    assert [each.result.id for each in found] == ["end.report"]


def test_an_event_that_is_left_is_found_and_shrunk(tmp_path: Path) -> None:
    found = explored(PROFILE, tmp_path, 6, Leaking)
    assert found
    assert min(len(each.actions) for each in found) <= 4


def test_explore_a_kernel(uevt: Any, built_kernel: Any, tmp_path: Path) -> None:
    shown = uevt("explore", "--kernel", "6.12", "--count", "20", "--seed", "1", "--out", tmp_path)
    programs, corpus, *_, seed, verdict = shown.out.splitlines()
    assert programs.startswith("programs  20 programs, ")
    assert corpus.startswith("corpus    ")
    assert seed == "seed      1"
    assert verdict == "uevt: 6.12 explored: no divergence"


def test_a_kernel_without_user_events_is_not_explored(
    uevt: Any, kernel_without_user_events: Any, tmp_path: Path
) -> None:
    kernel = kernel_without_user_events.kernel_id
    words = ("--kernel", kernel, "--abi", "6.12", "--count", "3", "--seed", "1", "--out", tmp_path)
    shown = uevt("explore", *words, code=3)
    assert f"uevt: {kernel} was not explored: " in shown.err
    assert "explored: no divergence" not in shown.out


def test_an_interruption_keeps_what_is_being_shrunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(_: object, directory: Path, **__: object) -> ModelWorker:
        if directory.name == "shrinking":
            raise KeyboardInterrupt
        return ModelWorker(profile_for("6.12.117,persist=no"))

    monkeypatch.setattr(exploration, "Worker", worker)
    plan = Plan(Target("6.12", "6.12.117"), "seed", None, None)
    said = Mock()
    with pytest.raises(KeyboardInterrupt):
        exploration._explore(plan, tmp_path / "guest-0", 0, 1, said)
    last = said.send.call_args.args[0]
    assert last.shrinking.result.outcome is Outcome.FAIL

    def wait_for_the_end(*given: Any) -> None:
        given[-1].send(last)
        given[-1].recv()

    def interrupt(_: Exploration) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exploration, "_explore", wait_for_the_end)
    done = Exploration()
    with pytest.raises(KeyboardInterrupt):
        explore(plan, tmp_path, Corpus(None), 1, done, interrupt)
    (kept,) = done.divergences
    assert kept.text == last.shrinking.text


def test_an_earlier_exploration_is_kept(
    uevt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    played, *_ = explored(profile_for("6.12.117,persist=no"), tmp_path, 40)

    def explore_again(*given: Any) -> None:
        *_, done, says = given
        done.divergences.append(played)
        says(done)

    monkeypatch.setattr(command, "explore", explore_again)
    monkeypatch.setattr(one_kernel, "resolve", lambda _: Target("6.12", "6.12"))
    for name in ("6.12", "6.12-2"):
        uevt("explore", "--kernel=6.12", "--seed=1", code=1)
        assert (tmp_path / "results" / "explore" / name / "1" / "failure.txt").exists()


def test_a_divergence_is_printed_on_a_full_disk(
    uevt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    played, *_ = explored(profile_for("6.12.117,persist=no"), tmp_path, 40)

    def explore_one(*given: Any) -> None:
        *_, done, says = given
        out.rmdir()
        out.write_text("")
        done.divergences.append(played)
        says(done)

    monkeypatch.setattr(command, "explore", explore_one)
    monkeypatch.setattr(one_kernel, "resolve", lambda _: Target("6.12", "6.12"))
    shown = uevt("explore", "--kernel=6.12", "--seed=1", "--out", out, code=3)
    assert played.result.difference in " ".join(shown.out.split())


def test_a_divergence_counts_where_the_corpus_cannot_be_kept(
    uevt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, *_ = explored(profile_for("6.12.117,persist=no"), tmp_path, 40)

    def fail(_: Corpus) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(command, "explore", lambda *given: given[4].divergences.append(played))
    monkeypatch.setattr(one_kernel, "resolve", lambda _: Target("6.12", "6.12"))
    monkeypatch.setattr(Corpus, "write", fail)
    shown = uevt("explore", "--kernel=6.12", "--seed=1", "--out", tmp_path / "out", code=1)
    assert "explored: 1 divergence" in shown.out
    assert "the corpus is not kept: [Errno 30] Read-only file system" in shown.err


def test_a_seed_is_printed_where_it_repeats_the_exploration() -> None:
    done = Exploration()
    assert "seed      1" in _summary(done, Corpus(None), "1", 1.0)
    assert not [line for line in _summary(done, Corpus(None), "", 1.0) if "seed" in line]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kernel", "model"], "the model cannot diverge from itself"),
        (["--kernel", "6.12", "--count", "0"], "--count"),
        (["--kernel", "6.12", "--count", "x"], "'x' is no number of 1 or more"),
        (["--kernel", "6.12", "--out", "."], "is not empty"),
        (["--kernel", "6.12", "--out", "README.md"], "README.md: cannot be written"),
        (["--kernel", "6.12", "--out", "README.md/x"], "README.md/x: cannot be written"),
    ],
)
def test_mistakes_are_refused(uevt: Any, words: list[str], message: str) -> None:
    assert message in uevt("explore", *words, code=2).err
