"""Races: the possible results and final states of tasks that run concurrently.

Every modelled system call of user_events takes effect at one point, under reg_mutex and event_mutex
(trace_events_user.c:user_events_ioctl, user_event_reg) or through one atomic operation
(user_event_enabler_write, user_events_write_core).  So a race is some interleaving of its steps.
fork(2) takes effect at two: copy_process() copies memory first, and enablers at its end.

With one pass per track every interleaving is tried.  With more passes, the results are those of all
interleavings of a few passes, and the final state must not depend on the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, zip_longest

from conformance.model.answers import Answer
from conformance.model.errors import NotModelled, TooManyStates
from conformance.model.state.copies import copied, frozen, thawed
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import event_paths
from conformance.ops import Open, Operation
from conformance.ops import race as races
from conformance.ops.race import Add, Race
from conformance.ops.tasks import CLONE_VM, Clone

# Applies an operation to a state: the answers, each with the next state.  The flag allows pending
# page fix-ups to happen first.
Step = Callable[[World, Operation, bool], Iterable[tuple[Answer, World]]]

# More passes give no further results.
_PASSES = 2
# Limit of states.
_MAX_STATES = 4096

_Answers = tuple[tuple[int, int, str], ...]


def outcomes(world: World, race: Race, step: Step) -> list[tuple[Answer, World]]:
    """The possible results of a race, each with a final state."""
    if all(track.passes == 1 for track in race.tracks):
        ends = _every_order(world, race, step, together=False)
        return [(Answer(0, "", _tallies_text(race, answers)), after) for answers, after in ends]
    found = {
        each for answers, _ in _every_order(world, race, step, together=True) for each in answers
    }
    runs = [_run(world, order, step) for order in _orders(race)]
    found |= {each for answers, _ in runs for each in answers}
    allowed = races.format_allowed(race, _by_step(race, found)).encode()
    return [
        (Answer(0, "", allowed, example=_tallies_text(race, answers), counted=True), after)
        for answers, after in runs
    ]


def add(world: World, process: Process, operation: Add) -> Answer:
    """``lock add``: concurrent changes of other bits survive."""
    memory = process.memory
    before = int.from_bytes(memory.read(operation.address, 4), "little")
    after = (before + operation.amount * operation.times) & 0xFFFFFFFF
    memory.store(operation.address, after.to_bytes(4, "little"))
    return Answer(0)


def _tallies_text(race: Race, answers: Iterable[tuple[int, int, str]]) -> bytes:
    return races.format_tallies(race, _by_step(race, answers)).encode()


def _by_step(race: Race, answers: Iterable[tuple[int, int, str]]) -> list[list[Counter[str]]]:
    """How often each answer came, by track and step."""
    tallies: list[list[Counter[str]]] = [[Counter() for _ in track.steps] for track in race.tracks]
    for track, step, answer in answers:
        tallies[track][step][answer] += 1
    return tallies


def _every_order(
    world: World, race: Race, step: Step, *, together: bool
) -> list[tuple[_Answers, World]]:
    """All results of a few passes, each with its final state.

    ``together`` merges the results of all interleavings, and leaves page fix-ups pending, which
    change no answer.
    """
    tracks = [list(_in_two_steps(track)) for track in races.unroll(race, _PASSES)]
    start = (0,) * len(tracks)
    level: dict[tuple[tuple[int, ...], _Answers, bytes], None] = {(start, (), frozen(world)): None}
    seen: set[tuple[int, int, str]] = set()
    for _ in range(sum(map(len, tracks))):
        following: dict[tuple[tuple[int, ...], _Answers, bytes], None] = {}
        for positions, answers, state in level:
            for number, track in enumerate(tracks):
                if positions[number] == len(track):
                    continue
                index, operation = track[positions[number]]
                moved = tuple(p + (n == number) for n, p in enumerate(positions))
                if index is None:
                    after = thawed(state)
                    process = after.process(operation.actor)
                    process.copied_memory = process.memory.fork()
                    following[moved, answers, frozen(after)] = None
                    continue
                for answer, after in step(thawed(state), operation, not together):
                    results = [answer.errno or str(answer.value or 0)]
                    if _removed_meanwhile(world, operation, answer):
                        results.insert(0, "ENODEV")
                    for result in ((number, index, each) for each in results):
                        seen.add(result)
                        way = () if together else tuple(sorted((*answers, result)))
                        following[moved, way, frozen(after)] = None
        if len(following) > _MAX_STATES:
            raise TooManyStates("too many interleavings: give the race fewer steps")
        level = following
    if together:
        return [(tuple(seen), world)]
    return [(answers, thawed(state)) for _, answers, state in level]


def _in_two_steps(
    track: Iterable[tuple[int, Operation]],
) -> Iterator[tuple[int | None, Operation]]:
    """The steps of a track; None stands for the copy of memory that begins a fork(2)."""
    for index, operation in track:
        if isinstance(operation, Clone) and not operation.flags & CLONE_VM:
            yield None, operation
        yield index, operation


def _removed_meanwhile(before: World, operation: Operation, answer: Answer) -> bool:
    """Whether open(2) found the file of an event that was removed before the file was opened.

    See ``machine._overtaken``: open(2) does not take effect at one point.
    """
    return (
        isinstance(operation, Open)
        and answer.errno == "ENOENT"
        and event_paths.event_at(before, operation.path) is not None
    )


def _orders(race: Race) -> Iterator[list[list[tuple[int, int, Operation]]]]:
    """Some interleavings of all passes."""
    passes = [
        [
            [(number, index, step) for index, step in enumerate(track.steps)]
            for _ in range(track.passes)
        ]
        for number, track in enumerate(race.tracks)
    ]
    yield [[step for one in row if one for step in one] for row in zip_longest(*passes)]
    if len(passes) == 1:
        return
    yield [one for track in passes for one in track]
    yield [one for track in reversed(passes) for one in track]


def _run(
    world: World, order: list[list[tuple[int, int, Operation]]], step: Step
) -> tuple[_Answers, World]:
    """One interleaving; pending work is done after each pass but the last."""
    after = copied(world)
    answers: list[tuple[int, int, str]] = []
    *first, last = order
    for one, equal in groupby(first):
        passes = len(list(equal))
        for done in range(1, passes + 1):
            # The second pass shows whether the others change nothing.
            before = frozen(after) if done == 2 else b""
            found, after = _pass(after, one, step)
            answers += found
            while after.pending:
                after.apply(after.pending[0])
            if before and frozen(after) == before:
                answers += found * (passes - done)
                break
    found, after = _pass(after, last, step)
    return (*answers, *found), after


def _pass(
    world: World, steps: list[tuple[int, int, Operation]], step: Step
) -> tuple[list[tuple[int, int, str]], World]:
    """The answers to some steps in this order, and the state after them."""
    answers = []
    for track, index, operation in steps:
        ways = list(step(world, operation, False))
        if not ways:
            raise NotModelled(f"{operation!r} in a race")
        answer, world = ways[0]
        answers.append((track, index, answer.errno or str(answer.value or 0)))
    return answers, world


HANDLERS: Handlers = {Add: add}
