"""The tasks and descriptors of a recorded program in the model.

A task is an actor; the number of a descriptor is its slot.  What is given here is taken over from
the recording and not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from conformance import ops
from conformance.abi.profile import Profile
from conformance.model.answers import Answer
from conformance.model.errors import ModelError, TooManyStates
from conformance.model.machine import Model
from conformance.model.state.world import World
from conformance.ops import tasks
from conformance.programs import operations
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
        self._processes = 0
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
        try:
            return self.model.step(operation, watches)
        except TooManyStates:
            self.remarks["pending work of the kernel was too much to follow"] += 1
            self.model.settle()
            return self.model.step(operation, watches)

    def observe(self, learn: Callable[[World], None]) -> None:
        """Change every possible state."""
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
        for slot in {each.descriptor for each in details.files} & set(self.paths(actor)):
            self.perform(tasks.KeepOverExec(actor, slot))
        self.perform(tasks.Exec(actor))
        self.actors[tid] = actor

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

        self.observe(learn)

    # Descriptors

    def paths(self, actor: str) -> dict[int, str]:
        """The tracefs files that an actor has open, by descriptor."""
        process = self.model.world.processes.get(actor)
        return {} if process is None else {slot: f.path for slot, f in process.slots.items()}

    def closed(self, actor: str) -> set[int]:
        """Descriptors of tracefs files that an actor has closed."""
        process = self.model.world.processes.get(actor)
        return set() if process is None else process.closed_slots - set(process.slots)

    def send(self, call: Call, actor: str) -> None:
        """Keep what is sent open, as the socket does."""
        for file in call.after.files:
            if file.descriptor not in self.paths(actor):
                self.not_judged["sendmsg of a descriptor of unknown origin"] += 1
                continue
            self._sent += 1
            self._pass(actor, file.descriptor, LISTENER, self._sent)
            self._in_flight.append(self._sent)

    def receive(self, call: Call, actor: str) -> None:
        """Descriptors of a file arrive in the order in which they were sent."""
        for file in call.after.files:
            held = self.paths(LISTENER)
            path = operations.tracefs_path(file.path)
            found = [each for each in self._in_flight if held[each] == path]
            if not found:
                name = operations.name_of(call)
                self.not_judged[f"{name} of a descriptor of unknown origin"] += 1
                continue
            slots = self.model.world.process(LISTENER).slots
            if len({id(slots[each]) for each in found}) > 1:
                self.remarks["several descriptors were sent: they are taken in their order"] += 1
            self._in_flight.remove(found[0])
            self._pass(LISTENER, found[0], actor, file.descriptor)
            self.perform(ops.Close(LISTENER, found[0]))

    def _pass(self, sender: str, slot: int, receiver: str, new_slot: int) -> None:
        def learn(world: World) -> None:
            world.process(receiver).slots[new_slot] = world.process(sender).file(slot)

        self.observe(learn)
