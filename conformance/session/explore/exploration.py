"""Explorers side by side, each with a guest in a process of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NoReturn

from msgspec import Struct, field

from conformance.report.causes import symptom
from conformance.results.outcome import Outcome
from conformance.session.explore.choices import Actions
from conformance.session.explore.corpus import Corpus
from conformance.session.explore.explorer import Counts, Explorer, Played
from conformance.session.pool.worker_process import end, run_to_end, start
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker
from host.deadline import Deadline
from vm.errors import HostTrouble

#: Seconds between two messages of an explorer that finds nothing.
_SAYS_S = 1.0
#: Seconds without a message after which an explorer is given up: one program, and its shrinking.
_SILENT_S = 900.0
#: Seconds for an explorer to end its guests.
_END_S = 20.0


class Plan(Struct, frozen=True):
    """What is explored: until ``seconds`` are over or ``programs`` were run; None is no limit."""

    target: Target
    seed: str
    seconds: float | None
    programs: int | None
    kept: Sequence[Actions] = ()


class _Said(Struct, frozen=True):
    """A message of an explorer, about what it did since the last one.

    ``new`` programs reached something new, ``found`` diverge, ``passed`` are kept ones that passed.
    ``shrinking`` diverges, and will be found when it is shrunk.
    """

    counts: Counts
    new: list[Played]
    found: list[Played]
    passed: list[Actions]
    failed: str = ""
    ended: bool = False
    shrinking: Played | None = None


class Exploration(Struct):
    """What all explorers have found."""

    counts: Counts = field(default_factory=Counts)
    divergences: list[Played] = field(default_factory=list)


def explore(
    plan: Plan,
    directory: Path,
    corpus: Corpus,
    guests: int,
    done: Exploration,
    says: Callable[[Exploration], None],
) -> None:
    """Explore with several guests and add to ``done``; ``says`` is called after each message.

    Raises HostTrouble if an explorer fails.  On an interruption, too, no guest is left, and what is
    being shrunk counts as it is.
    """
    running: dict[Connection, int] = {}
    symptoms: set[object] = set()
    shrinking: dict[object, Played] = {}
    try:
        for number in range(guests):
            serve = partial(_serve, plan, directory / f"guest-{number}", number, guests)
            pid, connection = start(serve, list(running))
            running[connection] = pid
        for said in _messages(running):
            if said.failed:
                raise HostTrouble(said.failed)
            done.counts.add(said.counts)
            for played in said.new:
                corpus.add(played.actions, set(played.reached))
            for program in said.passed:
                corpus.passed(program)
            if said.shrinking is not None:
                shrinking.setdefault(symptom(said.shrinking.result), said.shrinking)
            for played in said.found:
                if symptom(played.result) not in symptoms:
                    symptoms.add(symptom(played.result))
                    done.divergences.append(played)
            says(done)
    finally:
        done.divergences += [one for key, one in shrinking.items() if key not in symptoms]
        end(list(running.values()), _END_S)


def _messages(running: dict[Connection, int]) -> Iterator[_Said]:
    """The messages of all explorers until each has ended."""
    left = list(running)
    while left:
        ready = wait(left, _SILENT_S)
        if not ready:
            raise HostTrouble(f"no explorer said anything for {_SILENT_S:.0f} s")
        for connection in ready:
            assert isinstance(connection, Connection)
            try:
                said: _Said = connection.recv()
            except EOFError:
                raise HostTrouble("an explorer ended unexpectedly") from None
            if said.ended:
                left.remove(connection)
            yield said


def _serve(plan: Plan, directory: Path, number: int, of: int, parent: Connection) -> NoReturn:
    """Explore in a forked process, to its end."""

    def failed(error: BaseException) -> None:
        reason = str(error) if isinstance(error, HostTrouble) else traceback.format_exc()
        parent.send(_Said(Counts(), [], [], [], failed=reason))

    run_to_end(
        f"uevt explore {number}", lambda: _explore(plan, directory, number, of, parent), failed
    )


def _explore(plan: Plan, directory: Path, number: int, of: int, parent: Connection) -> None:
    directory.mkdir(parents=True)
    deadline = None if plan.seconds is None else Deadline(plan.seconds, "end of the exploration")
    share = None if plan.programs is None else (plan.programs + of - 1 - number) // of
    new: list[Played] = []
    found: list[Played] = []
    passed: list[Actions] = []

    def fresh(where: Path) -> Worker:
        where.mkdir(exist_ok=True)
        return Worker(plan.target, where, fresh_guests=True)

    with closing(Worker(plan.target, directory)) as worker:
        explorer = Explorer(
            worker,
            fresh,
            directory,
            plan.target.profile,
            seed=f"{plan.seed}.{number}",
            found=found.append,
            shrinking=lambda played: say(shrinking=played),
        )

        def say(*, ended: bool = False, shrinking: Played | None = None) -> None:
            parent.send(
                _Said(explorer.counts, new, found, passed, ended=ended, shrinking=shrinking)
            )
            explorer.counts = Counts()
            for sent in (new, found, passed):
                sent.clear()

        kept = iter(plan.kept[number::of])
        spoken = Deadline(_SAYS_S, "message")
        while share is None or share > 0:
            if deadline is not None and deadline.expired:
                break
            program = next(kept, None)
            played = explorer.invent() if program is None else explorer.repeat(program)
            share = None if share is None else share - 1
            if played.reached:
                new.append(played)
            if program is not None and played.result.outcome is Outcome.PASS:
                passed.append(program)
            if found or spoken.expired:
                say()
                spoken = Deadline(_SAYS_S, "message")
        explorer.finish()
        say(ended=True)
