"""The model: one step per operation, several states while work is pending.

``Model.step`` applies an operation to every possible state and returns the answers.
``Model.narrow`` keeps the states that explain an observation.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from conformance import ops
from conformance.abi.profile import Profile
from conformance.model.answers import FREED, Answer, Difference, differences
from conformance.model.errors import Errno, TooManyStates
from conformance.model.state.copies import copied, frozen, thawed
from conformance.model.state.world import FixUp, Release, Remove, Transition, World
from conformance.model.syscalls import races, scope
from conformance.model.syscalls.bpf import choices
from conformance.model.syscalls.dispatch import perform
from conformance.model.tracefs import event_paths, files
from conformance.model.tracing import kernel_events
from conformance.model.user_events import status_file
from conformance.ops.race import Race

# Limit of states; programs settle long before.
MAX_STATES = 256
# Limit of the states after a race.
_MAX_RACED = 4 * MAX_STATES
_FREED = "status-reads-freed-event"

Kinds = tuple[type[Transition], ...]
Learned = TypeVar("Learned")


class _Candidate(Struct):
    """A state after an operation, and its answer."""

    answer: Answer
    world: World


class Model:
    """The reference model of one system under one profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._worlds = [World.fresh(profile)]
        self._candidates: list[_Candidate] = []
        #: Known bugs of the kernel that alone explain an observation.
        self.bugs: set[str] = set()

    @property
    def world(self) -> World:
        """The possible state with the least pending work done."""
        return self._worlds[0]

    @property
    def is_ambiguous(self) -> bool:
        """Whether more than one state is possible."""
        return len(self._worlds) > 1

    def step(self, operation: ops.Operation, watches: Sequence[ops.Watch] = ()) -> list[Answer]:
        """All allowed answers to an operation, without duplicates and those of known bugs.

        Call ``narrow`` with the observation before the next step.  Raises ModelError for what is
        not modelled.
        """
        self._candidates = _candidates(self._worlds, operation, watches)
        return _distinct([each.answer for each in self._candidates if not each.answer.bug])

    def foresee(
        self,
        operation: ops.Operation,
        watches: Sequence[ops.Watch] = (),
        states: Sequence[bytes] | None = None,
    ) -> list[Answer]:
        """The answers that ``narrow`` would accept, in ``states`` if given, without a step."""
        worlds = list(map(thawed, self.states() if states is None else states))
        return _distinct([each.answer for each in _candidates(worlds, operation, watches)])

    def states(self) -> list[bytes]:
        """The possible states, for ``foresee``."""
        return list(map(frozen, self._worlds))

    def narrow(self, operation: ops.Operation, seen: ops.Observation) -> list[Difference]:
        """Keep the states that explain an observation.

        If there is none, return the differences to the closest answer and continue from its state,
        so that later steps can still be judged.
        """
        judged = [(differences(c.answer, seen), c) for c in self._candidates]
        explaining = [candidate for found, candidate in judged if not found]
        fitting = [each for each in explaining if not each.answer.bug] or explaining
        self.bugs.update(each.answer.bug for each in fitting[:1] if each.answer.bug)
        promised = (pair for pair in judged if not pair[1].answer.bug)
        closest, fallback = min(promised, key=lambda pair: len(pair[0]))
        self._candidates = []
        self._worlds = _unique([c.world for c in fitting or [fallback]])
        if fitting and seen.ok and seen.data is not None:
            self._bind(operation, seen.data)
        return [] if fitting else closest

    def observe(self, learn: Callable[[World], Learned]) -> list[Learned]:
        """Apply to every possible state what was observed outside of operations."""
        return [learn(world) for world in self._worlds]

    def settle(self) -> None:
        """Apply all pending work."""
        for world in self._worlds:
            while world.pending:
                world.apply(world.pending[0])
        self._worlds = _unique(self._worlds)

    def _bind(self, operation: ops.Operation, data: bytes) -> None:
        """Learn content that the kernel chooses from its first read."""
        for world in self._worlds:
            match operation:
                case ops.ReadFile(path=path) if event_paths.is_first_id(world, path):
                    world.table.first_id = int(data)
                case ops.ReadFile(path=path) if kernel_events.is_opaque(path):
                    world.kernel_file_texts.setdefault(path, data)
                case ops.Load(actor=actor, address=address):
                    world.process(actor).memory.learn(address, data)


def _candidates(
    worlds: Sequence[World],
    operation: ops.Operation,
    watches: Sequence[ops.Watch],
    *,
    fixing: bool = True,
) -> list[_Candidate]:
    """Apply an operation to all possible states.

    Unless ``fixing``, page fix-ups stay pending.
    """
    candidates = []
    before: Kinds = (Release, Remove) if operation.depends_on_events else ()
    before = (*before, FixUp) if fixing else before
    started = _before(worlds, operation, before)
    if len(started) > MAX_STATES:
        raise TooManyStates("too much work is pending: settle first")
    walked = [each for world in started for each in choices(world, operation)]
    reachable = [each for world in walked for each in files.choices(world, operation)]
    for world in reachable:
        if isinstance(operation, Race):
            for raced, end in races.outcomes(world, operation, _step):
                for after in _reachable([end], (FixUp,)) if watches else [end]:
                    candidates.append(_Candidate(_watching(raced, after, watches), after))
                if len(candidates) > _MAX_RACED:
                    raise TooManyStates("the race has too many outcomes: let fewer words wait")
            continue
        overtaken = _overtaken(world, operation)
        answer = perform(world, operation)
        if overtaken is not None:
            refused = Answer(-1, "ENODEV")
            candidates.append(_Candidate(_watching(refused, overtaken, watches), overtaken))
        for freed, removed in _reading_freed(world, operation, answer):
            candidates.append(_Candidate(_watching(freed, removed, watches), removed))
        for after in _reachable([world], (FixUp,)) if watches else [world]:
            candidates.append(_Candidate(_watching(answer, after, watches), after))
    return candidates


def _before(worlds: Sequence[World], operation: ops.Operation, kinds: Kinds) -> list[World]:
    """The states in which an operation may start, each once."""
    if not any(world.pending for world in worlds):
        return list(worlds)
    together: dict[frozenset[str] | None, list[World]] = {}
    for world in worlds:
        together.setdefault(scope.event_names(world, operation), []).append(world)
    started = [_reachable(group, kinds, names) for names, group in together.items()]
    return started[0] if len(started) == 1 else _unique([*itertools.chain(*started)])


def _step(world: World, operation: ops.Operation, fixing: bool) -> list[tuple[Answer, World]]:
    """The answers and next states of one step of a race."""
    found = _candidates([world], operation, (), fixing=fixing)
    return [(each.answer, each.world) for each in found if not each.answer.bug]


def _watching(answer: Answer, world: World, watches: Sequence[ops.Watch]) -> Answer:
    """The answer with the watched memory of a state."""
    if not watches:
        return answer
    return replace(answer, memory={(w.actor, w.address): _watched(world, w) for w in watches})


def _overtaken(world: World, operation: ops.Operation) -> World | None:
    """The state if the removal of an event overtakes open(2) of one of its files.

    open(2) finds the directory entry, waits for event_mutex, then finds the file marked as freed:
    trace.c:tracing_open_file_tr and trace_events.c:f_start return ENODEV.  None if no removal of
    that event is pending.
    """
    if not isinstance(operation, (ops.Open, ops.ReadFile, ops.WriteFile)):
        return None
    event = event_paths.event_at(world, operation.path)
    return None if event is None else _removed(world, event.serial)


def _removed(world: World, event: int) -> World | None:
    """A copy of the state without an event; None if no removal of it is pending."""
    if Remove(event) not in world.pending:
        return None
    after = copied(world)
    after.apply(Remove(event))
    return after if after.table.find(event) is None else None


def _reading_freed(
    world: World, operation: ops.Operation, answer: Answer
) -> Iterator[tuple[Answer, World]]:
    """The answers, and the states, if an event is removed while user_events_status shows it.

    The bug status-reads-freed-event: trace_events_user.c:user_seq_show walks the table with
    reg_mutex held, delayed_destroy_user_event frees an event with event_mutex held.
    """
    if not (answer.data and world.pending and _shows_events(world, operation)):
        return
    if world.profile.fixed(_FREED):
        return
    for event in world.table.events:
        line = status_file.line_of(world, event).encode("latin-1")
        at = (b"\n" + answer.data).find(b"\n" + line)
        after = _removed(world, event.serial) if at >= 0 else None
        if after is not None:
            data = answer.data[:at] + FREED + answer.data[at + len(line) :]
            yield replace(answer, data=data, bug=_FREED, freed=line), after


def _shows_events(world: World, operation: ops.Operation) -> bool:
    """Whether an operation reads user_events_status."""
    if isinstance(operation, ops.ReadFile):
        return operation.path == files.STATUS
    if not isinstance(operation, ops.Read):
        return False
    file = world.process(operation.actor).slots.get(operation.slot)
    return file is not None and file.path == files.STATUS


def _reachable(
    worlds: Sequence[World], kinds: Kinds, names: frozenset[str] | None = None
) -> list[World]:
    """The states, and all states that pending work of some kinds leads to; no two are equal.

    With ``names`` only work on events of these names is done.
    """
    if not any(_distinct_pending(world, kinds, names) for world in worlds):
        return list(worlds)
    reached = {state: thawed(state) for state in map(frozen, worlds)}
    waiting = list(reached.items())
    while waiting:
        state, world = waiting.pop()
        pending = _distinct_pending(world, kinds, names)
        if 1 << len(pending) > MAX_STATES:
            raise TooManyStates("too much work is pending: settle first")
        for index in pending:
            changed = thawed(state)
            changed.apply(changed.pending[index])
            key = frozen(changed)
            if key not in reached:
                reached[key] = changed
                waiting.append((key, changed))
        if len(reached) > MAX_STATES:
            raise TooManyStates("too much work is pending: settle first")
    return list(reached.values())


def _distinct_pending(world: World, kinds: Kinds, names: frozenset[str] | None) -> list[int]:
    """The indexes of pending work of some kinds, without duplicates."""
    if not world.pending:
        return []
    counts = Counter(
        each
        for each in reversed(world.pending)
        if isinstance(each, kinds) and scope.concerns(world, each, names)
    )
    return [
        world.pending.index(each)
        for each, count in counts.items()
        if not scope.keeps_the_event(world, each, count)
    ]


def _unique(worlds: Sequence[World]) -> list[World]:
    """The states without duplicates.

    Unless their outlines differ, they become copies: equal texts of a state may be one object or
    several, which its bytes show.
    """
    if len(worlds) == 1:
        return list(worlds)
    _forget_ids(worlds)
    if len(set(map(_outline, worlds))) == len(worlds):
        return list(worlds)
    states = dict.fromkeys(map(frozen, worlds))
    return list(worlds[:1]) if len(states) == 1 else list(map(thawed, states))


def _outline(world: World) -> object:
    """What most states differ in: much less than all of a state."""
    events = ((event.serial, event.references) for event in world.table.events)
    return tuple(map(type, world.pending)), tuple(events)


def _forget_ids(worlds: Sequence[World]) -> None:
    """Forget in every state the ids that one of the states does not know.

    They allow more then, and become equal: most differ in nothing else.
    """
    unknown = [each.table.ids_unknown_since for each in worlds]
    least = min((since for since in unknown if since is not None), default=None)
    for world, since in zip(worlds, unknown, strict=True):
        if least is not None and since != least:
            world.table.forget_ids(least)


def _distinct(answers: list[Answer]) -> list[Answer]:
    kept: list[Answer] = []
    for answer in answers:
        if not any(replace(answer, reason=each.reason) == each for each in kept):
            kept.append(answer)
    return kept


def _watched(world: World, watch: ops.Watch) -> bytes | None:
    process = world.processes.get(watch.actor)
    if process is None:
        return None
    try:
        return process.memory.read(watch.address, watch.length)
    except Errno:
        return None
