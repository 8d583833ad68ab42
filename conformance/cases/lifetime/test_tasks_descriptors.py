"""Descriptors passed between processes, and a full descriptor table."""

from conformance import ops
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.client.data_file import DataFile
from conformance.client.process import Process
from conformance.client.tasks import first_task
from conformance.client.tracefs import DATA
from conformance.ops import Observation, tasks

DOC = "Registering: write_index is unique to the descriptor; silent about passing descriptors"
LIMITS = "Registering: an ioctl of user_events_data; silent about limits of descriptors"
case = surface("tasks", doc=DOC, level="behaviour", tier="full")

NEAR, FAR = 40, 41


def connected(ue: UserEvents) -> tuple[Process, Process]:
    """Two processes connected by a socket, NEAR in the first and FAR in the second."""
    sender = ue.process
    sender.run(ops.Socketpair(sender.actor, NEAR, FAR))
    return sender, ue.fork(sender)


def send(data: DataFile) -> Observation:
    """Send a descriptor from the first process."""
    return data.process.run(ops.SendDescriptor(data.process.actor, NEAR, data.slot))


def receive(receiver: Process) -> DataFile:
    """The descriptor that the second process receives."""
    slot = receiver.free_slot()
    assert receiver.run(ops.ReceiveDescriptor(receiver.actor, FAR, slot)).errno == ""
    return DataFile(receiver, slot)


@case(spec="user_events_ref_add: kept in the open file", tier="quick")
def test_passed_index(ue: UserEvents) -> None:
    """The receiver of a descriptor writes with the indices that its sender registered."""
    sender, receiver = connected(ue)
    data = ue.event("u64 a", "first", of=sender).data
    data.register(ue.name() + " u32 a")
    assert send(data).value == 1
    received = receive(receiver)
    ue.tracefs.enable(ue.name())
    assert received.write_event(1, b"\x03\0\0\0").value == 8
    assert received.write_event(2, b"\x03\0\0\0").errno == "ENOENT"
    assert ue.tracefs.records() == [ue.line("a=0x3 (3)", dump="03 00 00 00")]


@case(spec="user_events_ref_add: kept in the open file")
def test_passed_registers(ue: UserEvents) -> None:
    """The receiver continues the sender's numbering, and both can use all indices."""
    sender, receiver = connected(ue)
    data = ue.event(name="a", of=sender).data
    send(data)
    received = receive(receiver)
    assert (received.register(ue.name("b")).index, received.register(ue.name("a")).index) == (1, 0)
    assert (data.register(ue.name("b")).index, data.register(ue.name("c")).index) == (1, 2)


@case(spec="user_events_ioctl_unreg", profiles="6.4..")
def test_passed_words_stay(ue: UserEvents) -> None:
    """A received descriptor carries no enable word: the word belongs to the sender."""
    sender, receiver = connected(ue)
    event = ue.event(bit=3, of=sender)
    copy = receiver.word_at(event.word.address)
    send(event.data)
    assert receive(receiver).unregister(copy, bit=3).errno == "ENOENT"
    ue.tracefs.enable(ue.name())
    assert (event.word.value, copy.value) == (8, 0)


@case(spec="user_events_release", profiles="6.4..", needs="auto_delete")
@doc("Deleting: an event is deleted when no references are left; silent about passing descriptors")
@variants({"sender_gone": False, "sender_closed": True})
def test_passed_holds(ue: UserEvents, closed: bool) -> None:
    """A received descriptor holds the events of its sender until it is closed."""
    passing = process_with_event(ue)
    sender, receiver = connected(ue)
    event = ue.event(of=sender)
    send(event.data)
    received = receive(receiver)
    if closed:
        event.data.close()
        sender.open_data().unregister(event.word)
    else:
        sender.exit()
    assert status_after(ue, passing) == ue.name() + "\n"
    received.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_events_release", profiles="6.4..", needs="auto_delete")
@doc("Deleting: an event is deleted when no references are left; silent about passing descriptors")
def test_passed_in_flight(ue: UserEvents) -> None:
    """A descriptor in flight holds its events."""
    passing = process_with_event(ue)
    sender, receiver = connected(ue)
    send(ue.event(of=sender).data)
    sender.exit()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert receive(receiver).register(ue.name("b")).index == 1


@case(spec="user_events_release", profiles="6.4..", needs="auto_delete")
@doc("Deleting: an event is deleted when no references are left; silent about passing descriptors")
def test_passed_to_nobody(ue: UserEvents) -> None:
    """Closing the socket drops a descriptor in flight, and its events."""
    passing = process_with_event(ue)
    sender, receiver = connected(ue)
    sender.run(ops.Close(sender.actor, FAR))
    send(ue.event(of=sender).data)
    sender.exit()
    assert status_after(ue, passing) == ue.name() + "\n"
    receiver.run(ops.Close(receiver.actor, FAR))
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_events_ref_add: kept in the open file")
@doc("Overview: silent about the rights that the files need")
def test_passed_to_the_unprivileged(ue: UserEvents) -> None:
    """A process that may not open the data file registers and writes by a received descriptor."""
    sender, receiver = connected(ue)
    receiver.setuid(1000)
    seen, _ = receiver.open(DATA, 2)
    assert seen.errno == "EACCES"
    send(sender.open_data())
    received = receive(receiver)
    assert received.register(ue.name() + " u32 a").index == 0
    ue.tracefs.enable(ue.name())
    assert received.write_event(0, b"\x08\0\0\0").value == 8


@case(spec="fs/file.c:alloc_fd", doc=LIMITS, level="detail")
@variants({"data": DATA, "missing": "/sys/kernel/tracing/none"})
def test_no_descriptor_left(ue: UserEvents, path: str) -> None:
    """Opening with a full descriptor table is EMFILE, before the path is resolved."""
    task = first_task(ue)
    data = task.open_data()
    task.run(tasks.LimitDescriptors(task.actor, 0))
    seen, _ = task.open(path, 2)
    assert seen.errno == "EMFILE"
    assert data.register(ue.name()).index == 0
    task.run(tasks.LimitDescriptors(task.actor, 1024))
    assert task.open_data().register(ue.name()).errno == ""


@case(spec="user_events_ioctl_reg", doc=LIMITS, profiles="6.4..", needs="empty_payload")
def test_no_room_needed(ue: UserEvents) -> None:
    """Registering works with a full descriptor table: it needs no descriptor."""
    task = first_task(ue)
    data = task.open_data()
    task.run(tasks.LimitDescriptors(task.actor, 0))
    word = data.register(ue.name(), bit=1).word
    ue.tracefs.enable(ue.name())
    assert word.value == 2
    assert data.write_event(0).value == 4
    assert data.unregister(word, bit=1).value == 0
