"""The tasks and descriptors of a recorded program in the model.

A task is an actor; the number of a descriptor is its slot.  What is given here is taken over from
the recording and not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from conformance import ops
from conformance.abi.profile import Profile
from conformance.model.answers import Answer
from conformance.model.errors import ModelError, TooManyStates
from conformance.model.machine import Model
from conformance.model.state.world import World
from conformance.ops import tasks
from conformance.ops.credentials import EVERYTHING
from conformance.programs import calls
from conformance.programs.calls import Descriptors
from vm.recorder.recording import Call, Credentials, Details

LISTENER = "uevt"
"""The actor that creates the program and listens to it."""
# The vfork parent sleeps by itself: the model need not know.
_CLONE_FLAGS = tasks.THREAD


class Followed:
    """The model with the tasks of one program; counts what it cannot take over."""

    def __init__(self, profile: Profile) -> None:
        self.model = Model(profile)
        self.actors: dict[int, str] = {}
        self.not_judged: Counter[str] = Counter()
        self.remarks: Counter[str] = Counter()
        # Whether a filter may refuse calls with any error.
        self.filtered = False
        self._processes = 0
        self._doubt = ""
        # (actor, descriptor) of every close(2).
        self._closers: set[tuple[str, int]] = set()
        # Descriptors that were sent and not received yet: slots of the listener.
        self._in_flight: list[int] = []
        self._sent = 0
        self.perform(ops.Spawn(LISTENER))

    def perform(self, operation: ops.Operation, value: int = 0) -> None:
        """Tell the model of an operation that succeeded."""
        try:
            self.step(operation)
            self.model.narrow(operation, ops.Observation(value))
        except ModelError as reason:
            self.not_judged[str(reason)] += 1

    def step(self, operation: ops.Operation, watches: Sequence[ops.Watch] = ()) -> list[Answer]:
        """Model.step(); with too many states, as if the kernel had done its pending work."""
        if isinstance(operation, ops.Close):
            self._closers.add((operation.actor, operation.slot))
        try:
            return self.model.step(operation, watches)
        except TooManyStates:
            self.remarks["pending work of the kernel was too much to follow"] += 1
            self.model.settle()
            return self.model.step(operation, watches)

    # What is not followed

    @property
    def doubt(self) -> str:
        """What the model does not know of status and references of events; empty if nothing."""
        if self._in_flight and not self._doubt:
            return "what became of a descriptor that was sent"
        return self._doubt

    def lose_events(self, doubt: str) -> None:
        """Something changed status or references of events that the model does not know of."""
        self._doubt = self._doubt or doubt

    def forget(self, actor: str, slot: int) -> None:
        """Stop following an open file in every task that shares it: its state is unknown."""

        def learn(world: World) -> None:
            file = world.process(actor).slots.get(slot)
            for process in world.processes.values():
                for number in [each for each, held in process.slots.items() if held is file]:
                    del process.slots[number]

        self.model.observe(learn)

    # Tasks

    def start(self, tid: int) -> None:
        """The program itself."""
        self._create(LISTENER, tid, 0, thread=False)

    def fork(self, tid: int, child: int, tgid: int, flags: int) -> str | None:
        """A task created another one; the new actor."""
        if tid not in self.actors:
            return None
        self._create(self.actors[tid], child, flags & _CLONE_FLAGS, thread=child != tgid)
        return self.actors[child]

    def _create(self, parent: str, tid: int, flags: int, *, thread: bool) -> None:
        if thread:
            actor = f"{parent.partition('/')[0]}/{tid}"
        else:
            self._processes += 1
            actor = f"p{self._processes}"
        self.actors[tid] = actor
        self.perform(tasks.Clone(parent, actor, flags))

    def execute(self, tid: int, former: int, details: Details) -> None:
        """execve(2) of the thread ``former``, which is ``tid`` now; the details show what is left
        open."""
        actor = self.actors.pop(former, None)
        if actor is None:
            return

        def learn(world: World) -> None:
            process = world.process(actor)
            process.closed_slots, process.kept_over_exec = set(), set()

        self.model.observe(learn)
        for slot in {each.descriptor for each in details.files} & set(self._paths(actor)):
            self.perform(tasks.KeepOverExec(actor, slot))
        self.perform(tasks.Exec(actor))
        self.actors[tid] = actor

    def unshare(self, actor: str) -> None:
        """unshare(2) of CLONE_FILES: the same descriptors, in a table of its own."""

        def learn(world: World) -> None:
            process = world.process(actor)
            process.slots, process.closed_slots = dict(process.slots), set(process.closed_slots)
            process.kept_over_exec = set(process.kept_over_exec)

        self.model.observe(learn)

    def end(self, tid: int) -> None:
        """A task has ended."""
        actor = self.actors.pop(tid, None)
        if actor is not None and actor in self.model.world.processes:
            self.perform(tasks.ExitTask(actor))

    def become(self, actor: str, seen: Credentials | None) -> None:
        """Take over the credentials of a task."""
        if seen is None:
            return

        def learn(world: World) -> None:
            credentials = world.process(actor).credentials
            credentials.uid, credentials.gid = seen.uid, seen.gid
            credentials.effective = seen.capabilities
            credentials.in_user_namespace = seen.in_user_namespace

        self.model.observe(learn)

    def open_as_root(self, operation: ops.Open) -> None:
        """Take over an open(2) that succeeded against the modes of the model."""
        everything = Credentials(0, 0, EVERYTHING, in_user_namespace=False)
        self.become(operation.actor, everything)
        self.perform(operation)

    # Descriptors

    def descriptors(self, actor: str) -> Descriptors:
        """The tracefs files that an actor has open or has closed."""
        process = self.model.world.processes.get(actor)
        if process is None:
            return Descriptors({})
        closed = process.closed_slots - set(process.slots)
        return Descriptors(
            {slot: file.path for slot, file in process.slots.items()},
            closed,
            {slot for slot in closed if (actor, slot) in self._closers},
        )

    def _paths(self, actor: str) -> Mapping[int, str]:
        return self.descriptors(actor).paths

    def send(self, call: Call, actor: str) -> None:
        """Keep what is sent open, as the socket does, until the call is known to have failed."""
        if call.result is not None and call.result < 0:
            paths = self._paths(actor)
            count = sum(each.descriptor in paths for each in call.after.files)
            for slot in self._in_flight[len(self._in_flight) - count :]:
                self._in_flight.remove(slot)
                self.perform(ops.Close(LISTENER, slot))
            return
        for file in call.after.files:
            if file.descriptor not in self._paths(actor):
                self._unknown(call)
                continue
            self._sent += 1
            self._pass(actor, file.descriptor, LISTENER, self._sent)
            self._in_flight.append(self._sent)

    def receive(self, call: Call, actor: str) -> None:
        """Descriptors of a file arrive in the order in which they were sent."""
        for file in call.after.files:
            held = self._paths(LISTENER)
            path = calls.tracefs_path(file.path)
            found = [each for each in self._in_flight if held[each] == path]
            if not found:
                self._unknown(call)
                continue
            slots = self.model.world.process(LISTENER).slots
            if len({id(slots[each]) for each in found}) > 1:
                self.remarks["several descriptors were sent: they are taken in their order"] += 1
            self._pass(LISTENER, found[0], actor, file.descriptor)
            if not calls.peeks(call):
                self._in_flight.remove(found[0])
                self.perform(ops.Close(LISTENER, found[0]))

    def take(self, call: Call) -> None:
        """pidfd_getfd(2): the descriptor of another process, which is not followed."""
        if call.after.files:
            self._unknown(call)

    def _unknown(self, call: Call) -> None:
        reason = f"{calls.name_of(call)} of a descriptor of unknown origin"
        self.not_judged[reason] += 1
        self.lose_events(reason)

    def _pass(self, sender: str, slot: int, receiver: str, new_slot: int) -> None:
        def learn(world: World) -> None:
            world.process(receiver).slots[new_slot] = world.process(sender).file(slot)

        self.model.observe(learn)
