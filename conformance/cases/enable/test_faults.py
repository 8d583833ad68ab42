"""How often the kernel faults in the page of an enable word.

A page of a device can be faulted in, but not pinned.
"""

from conformance.cases.case import UserEvents, spec, surface
from conformance.client.memory import map_device, minor_faults

case = surface(
    "enable",
    spec="user_event_mm_fault_in: attempt > 10",
    doc="Registering: enable_addr is where the status is reflected; silent about such memory",
    level="detail",
    profiles="6.4..",
    own_kernel="it counts page faults, which other work of a machine causes too",
)

# The write is attempted once more than the page is faulted in.
FAULTS = 10


@case(spec="user_event_enabler_write; trace_events_user.c:user_event_mm_clear_bit")
def test_present_word(ue: UserEvents) -> None:
    """A word in a page that is there is written without a fault, by registering and by its end."""
    data, word = ue.open_data(), ue.process.word()
    for _ in range(2):
        # The first calls fault in memory of the program, too.
        before = minor_faults(ue.process)
        data.register(ue.name(), word=word)
        assert data.unregister(word).ok
        faults = minor_faults(ue.process) - before
    assert faults == 0


@case(bug="enomem-for-bad-address", facilities="device_memory")
def test_device_word(ue: UserEvents) -> None:
    """A word in memory of a device is refused after its page was faulted in ten times."""
    data, address = ue.open_data(), ue.process.reserve(1)
    map_device(ue.process, address)
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    for _ in range(2):
        before = minor_faults(ue.process)
        assert data.register(ue.name(), enable_addr=address).errno == errno
        faults = minor_faults(ue.process) - before
    assert faults == FAULTS


@case(facilities="device_memory")
@spec("user_event_mm_clear_bit; trace_events_user.c:user_event_enabler_fault_fixup")
def test_device_in_place_of_a_word(ue: UserEvents) -> None:
    """If a word's page becomes memory of a device, unregistering is EFAULT after ten faults."""
    data, process = ue.open_data(), ue.process
    word, other = process.map(), process.word()
    process.store(word, bytes(4))
    data.register(ue.name(), enable_addr=word)
    process.unmap(word)
    map_device(process, word)
    ue.tracefs.enable(ue.name())
    assert data.unregister(other).errno == "ENOENT"
    before = minor_faults(process)
    assert data.unregister(word).errno == "EFAULT"
    assert minor_faults(process) - before == FAULTS
