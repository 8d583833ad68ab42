"""Memory of the kernel: what a call allocates is freed again."""

from collections.abc import Callable

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.client.addresses import PAGE
from conformance.client.process import Process
from conformance.client.races import RaceCalls, race, track
from conformance.client.tasks import first_task
from conformance.client.tracefs import DYNAMIC_EVENTS
from conformance.ops import Operation

case = surface(
    "lifetime",
    doc="Deleting: an event is deleted when no references are left; silent about memory",
    level="behaviour",
    profiles="6.4..",
    needs="auto_delete",
    tier="full",
    isolation="global",
    facilities="freed_memory",
)

# Growth in kB that ends the wait for deferred work; each leak is twice as large.
LIMIT = 128
# A definition of nearly 512 bytes.
FIELDS = f"u8 {'a' * 450}"


def _growth(ue: UserEvents, repeat: Callable[[], object]) -> int:
    """How much the kernel's memory grows when calls are repeated once more; kB."""
    before = ue.process.kernel_memory()
    repeat()
    grown = ue.process.kernel_memory() - before
    for _ in range(20):
        if grown < LIMIT:
            break
        # Grace periods, after which the kernel frees what readers may have used.
        ue.tracefs.enable(ue.name())
        ue.tracefs.disable(ue.name())
        grown = ue.process.kernel_memory() - before
    return grown


@case(needs="lasting_events auto_delete")
@spec("user_event_parse; trace_events_user.c:user_events_ioctl_del, destroy_user_event")
@variants("registration", "deletion", "commands")
def test_memory_of_calls(ue: UserEvents, of: str) -> None:
    """Calls that are repeated leave nothing behind: no string, no enabler, no pinned page."""
    task = first_task(ue)
    prepared, data = RaceCalls(task), task.open_data()
    data.register(f"{ue.name()} {FIELDS}")
    steps: list[Operation]
    if of == "registration":
        page = task.map(2)
        # The kernel pins one page, also if the next one is there.
        task.store(page + PAGE, b"\1")
        word = task.word_at(page)
        again = prepared.register(data, f"{ue.name()} {FIELDS}", word=word)
        steps, passes = [again, prepared.unregister(data, word)], 2400
        answers = [{"0": 2400}, {"0": 2400}]
    elif of == "deletion":
        steps, passes = [prepared.delete(data, "a" * 500)], 1200
        answers = [{"ENOENT": 1200}]
    else:
        lines = [f"{sign}:{ue.name('other')} {FIELDS}" for sign in "u-"]
        steps, passes = [prepared.command(DYNAMIC_EVENTS, line) for line in lines], 300
        answers = [{f"{len(line)}": 300} for line in lines]
    repeated = track(task, *steps, passes=passes)
    assert race(task, repeated) == [answers]
    assert _growth(ue, lambda: race(task, repeated)) < 128


@case(spec="user_events_ref_add, user_events_release")
def test_memory_of_descriptors(ue: UserEvents) -> None:
    """The arrays that list the events of a descriptor are freed, also those that were replaced."""
    names = [ue.name(), *(ue.name(str(number)) for number in range(119))]

    def register(process: Process) -> None:
        data, words = process.open_data(), [process.word(8), process.word(8)]
        for number, name in enumerate(names):
            at, bit = divmod(number, 64)
            data.register(name, word=words[at], bit=bit)

    def repeat() -> None:
        for _ in range(4):
            process = ue.new_process()
            register(process)
            process.exit()

    register(ue.process)
    repeat()
    assert _growth(ue, repeat) < 128
