"""Races: what tasks that run at once may be answered, and in which states they may end.

Every system call of user_events that is modelled here happens at one moment, under reg_mutex and
event_mutex (trace_events_user.c:user_events_ioctl, user_event_reg) or by one atomic operation
(user_event_enabler_write, user_events_write_core).  So a race goes as some order of its steps.

A race of one pass is tried in every order.  Of one with more the answers are those of every order
of a few passes; it has to end alike whoever was faster, as far as its program looks.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

from conformance.model.answers import Answer
from conformance.model.errors import NotModelled, TooManyStates
from conformance.model.state.world import World
from conformance.model.tracefs import files
from conformance.ops import race as races
from conformance.ops.race import Add, Race
from conformance.ops.syscalls import Open, Operation

# What an operation makes of a state: the answers, each with the state that follows.  Pages that
# are awaited may have come before, if the last word says so.
Step = Callable[[World, Operation, bool], Iterable[tuple[Answer, World]]]

# What more passes would bring was seen in these.
_PASSES = 2
# Orders are tried until they come to so many states.
_MOST = 4096

_Answers = tuple[tuple[int, int, str], ...]


def outcomes(world: World, race: Race, step: Step) -> list[tuple[Answer, World]]:
    """What may be told of a race, each with a state in which it may end."""
    if all(track.passes == 1 for track in race.tracks):
        ends = _every_order(world, race, step, together=False)
        return [(Answer(0, "", _told(race, answers)), after) for answers, after in ends]
    found = {
        each for answers, _ in _every_order(world, race, step, together=True) for each in answers
    }
    runs = [_run(world, order, step) for order in _orders(race)]
    found |= {each for answers, _ in runs for each in answers}
    may = [
        [
            {answer for t, s, answer in found if (t, s) == (track_number, number)}
            for number, _ in enumerate(track.steps)
        ]
        for track_number, track in enumerate(race.tracks)
    ]
    allowed = races.allowed(race, may).encode()
    return [
        (Answer(0, "", allowed, example=_told(race, answers), counted=True), after)
        for answers, after in runs
    ]


def add(world: World, operation: Add) -> Answer:
    """``lock add``: nothing that is written elsewhere in the word is lost."""
    memory = world.process(operation.actor).memory
    before = int.from_bytes(memory.read(operation.address, 4), "little")
    after = (before + operation.amount * operation.times) & 0xFFFFFFFF
    memory.store(operation.address, after.to_bytes(4, "little"))
    return Answer(0)


def _told(race: Race, answers: Iterable[tuple[int, int, str]]) -> bytes:
    counted = Counter(answers)
    tallies = [
        [
            {answer: n for (t, s, answer), n in counted.items() if (t, s) == (track_number, number)}
            for number, _ in enumerate(track.steps)
        ]
        for track_number, track in enumerate(race.tracks)
    ]
    return races.told(race, tallies).encode()


def _every_order(
    world: World, race: Race, step: Step, *, together: bool
) -> list[tuple[_Answers, World]]:
    """All ends of a few passes: what was answered on the way, and the state.

    ``together`` forgets which answers belong to which state: each comes with those on any way.
    Pages that are awaited do not come then: no answer depends on it.
    """
    tracks = races.unrolled(race, _PASSES)
    start = (0,) * len(tracks)
    level: dict[tuple[tuple[int, ...], _Answers, bytes], None] = {
        (start, (), pickle.dumps(world)): None
    }
    seen: set[tuple[int, int, str]] = set()
    for _ in range(sum(map(len, tracks))):
        following: dict[tuple[tuple[int, ...], _Answers, bytes], None] = {}
        for positions, answers, frozen in level:
            for number, track in enumerate(tracks):
                if positions[number] == len(track):
                    continue
                index, operation = track[positions[number]]
                moved = tuple(p + (n == number) for n, p in enumerate(positions))
                for answer, after in step(pickle.loads(frozen), operation, not together):
                    if _removed_meanwhile(world, operation, answer):
                        late = (number, index, "ENODEV")
                        seen.add(late)
                        way = () if together else tuple(sorted((*answers, late)))
                        following[moved, way, pickle.dumps(after)] = None
                    said = (number, index, answer.errno or str(answer.value or 0))
                    seen.add(said)
                    way = () if together else tuple(sorted((*answers, said)))
                    following[moved, way, pickle.dumps(after)] = None
        if len(following) > _MOST:
            raise TooManyStates("a race of fewer steps, please")
        level = following
    if together:
        return [(tuple(seen), world)]
    return [(answers, pickle.loads(frozen)) for _, answers, frozen in level]


def _removed_meanwhile(before: World, operation: Operation, answer: Answer) -> bool:
    """Whether a file that is gone could be found as a race began, and its event no more then.

    See ``machine._overtaken``: the one call that does not happen at one moment.
    """
    return (
        isinstance(operation, Open)
        and answer.errno == "ENOENT"
        and files.event_at(before, operation.path) is not None
    )


def _orders(race: Race) -> Iterator[list[list[tuple[int, int, Operation]]]]:
    """Some orders of all passes of a race, as lists of passes."""
    passes = [
        [
            [(number, index, step) for index, step in enumerate(track.steps)]
            for _ in range(track.passes)
        ]
        for number, track in enumerate(race.tracks)
    ]
    yield [[step for one in row if one for step in one] for row in zip_longest(*passes)]
    yield [one for track in passes for one in track]
    yield [one for track in reversed(passes) for one in track]


def _run(
    world: World, order: list[list[tuple[int, int, Operation]]], step: Step
) -> tuple[_Answers, World]:
    """A race in one order; what is left to do later is done after each pass but the last."""
    after: World = pickle.loads(pickle.dumps(world))
    answers: list[tuple[int, int, str]] = []
    for number, one in enumerate(order):
        for track, index, operation in one:
            ways = list(step(after, operation, False))
            if not ways:
                raise NotModelled(f"{operation!r} in a race")
            answer, after = ways[0]
            answers.append((track, index, answer.errno or str(answer.value or 0)))
        while after.pending and number < len(order) - 1:
            after.apply(after.pending[0])
    return tuple(answers), after
