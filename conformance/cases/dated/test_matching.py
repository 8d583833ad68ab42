"""Dated changes of matching and writing: definitions that match, and what a write may contain."""

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.bpf_recorder import Recorder
from conformance.client.addresses import PAGE
from conformance.client.perf import COUNTING, open_perf

DOC = "Command Format: fields follow the name; silent about when two definitions are equal"
case = surface("dated", doc=DOC, level="behaviour")


@case(profiles="5.18..6.0", switch="deletion_arguments_matched")
@spec("user_event_match, user_fields_match")
@doc("@v5.18: Deleting: silent about fields")
def test_deletion_arguments_matched(ue: UserEvents) -> None:
    """Other fields match no event; in the first kernels the name was enough."""
    ue.event("u32 a")
    found = ue.tracefs.command(f"-:{ue.name()} u64 b\n")
    # No event of that text, or one that is in use.
    assert found.errno == ue.dated("deletion_arguments_matched", since="ENOENT", before="EBUSY")


# Without deletion_arguments_matched nothing is compared.
@case(needs="deletion_arguments_matched", switch="strings_formatted_safely")
@spec("user_field_set_string, user_dyn_field_set_string; before 6.1 user_field_match")
def test_strings_formatted_safely(ue: UserEvents) -> None:
    """A percent sign in a field is text; before 6.1 it was a format, and 5% equalled %."""
    ue.event("u8 a%%")
    found = ue.tracefs.command(f"-:{ue.name()} u8 a%5%\n")
    # No event of that text, or one that is in use.
    assert found.errno == ue.dated("strings_formatted_safely", since="ENOENT", before="EBUSY")


# Without deletion_arguments_matched nothing is compared.
@case(needs="deletion_arguments_matched", switch="struct_size_matched")
@spec("user_event_match, user_fields_match")
def test_struct_size_matched(ue: UserEvents) -> None:
    """The size of a struct is compared; before that no struct matched itself."""
    ue.event("struct s a 20")
    found = ue.tracefs.command(f"-:{ue.name()} struct s a 20\n")
    assert found.errno == ue.dated("struct_size_matched", since="EBUSY", before="ENOENT")


@case(spec="user_event_parse", switch="arguments_matched")
@doc("Registering: without USER_EVENT_REG_MULTI_FORMAT a changed format is blocked;")
@doc("silent about the error")
def test_arguments_matched(ue: UserEvents) -> None:
    """A name in use with other fields is EADDRINUSE; before, the existing event was returned."""
    again = ue.event("u32 a").data.register(ue.name() + " u64 b")
    assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")


@case(spec="user_event_match", switch="null_arguments_matched")
def test_null_arguments_matched(ue: UserEvents) -> None:
    """A bare name is an event without fields; before, it matched every event of that name."""
    ue.event("u32 a")
    found = ue.tracefs.command(f"-:{ue.name()}\n")
    assert found.errno == ue.dated("null_arguments_matched", since="ENOENT", before="EBUSY")


@case(profiles="6.4..", needs="arguments_matched", switch="unspaced_fields_match")
@spec("insert_space_after_semis")
def test_unspaced_fields_match(ue: UserEvents) -> None:
    """Fields match without a space between them; before 6.10 they did not."""
    again = ue.event("u32 a;u32 b").data.register(ue.name() + " u32 a;u32 b")
    assert again.errno == ue.dated("unspaced_fields_match", since="", before="EADDRINUSE")


@case(profiles="5.18..6.0", switch="unreadable_payload_refused")
@spec("user_events_write_core: fault_in_iov_iter_readable")
@doc("@v5.18: Writing Data: silent about bad payloads")
def test_unreadable_payload_refused(ue: UserEvents) -> None:
    """A payload that ends in unreadable memory is EFAULT; in the first kernels it was truncated."""
    data = ue.event("u16 a", enabled=True).data
    address = ue.process.map() + PAGE - 5
    ue.process.store(address, bytes(5))
    written = data.write_at(address, 6)
    assert written.errno == ue.dated("unreadable_payload_refused", since="EFAULT", before="")


@case(profiles="5.18..6.0", switch="payload_size_checked")
@spec("user_events_write_core: user->min_size")
@doc("@v5.18: Writing Data: silent about bad payloads")
def test_payload_size_checked(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL; in the first kernels it was recorded."""
    written = ue.event("u16 a", enabled=True).write(b"\1")
    assert written.errno == ue.dated("payload_size_checked", since="EINVAL", before="")


@case(spec="user_event_validate", profiles="5.18..6.0", switch="dynamic_fields_validated")
@doc("@v5.18: Writing Data: silent about bad payloads")
def test_dynamic_fields_validated(ue: UserEvents) -> None:
    """A dynamic field that ends past its record is EFAULT; the first kernels did not check."""
    written = ue.event("__rel_loc u8[] a", enabled=True).write(b"\0\0\1\0")
    assert written.errno == ue.dated("dynamic_fields_validated", since="EFAULT", before="")


@case(spec="user_events_write_core: idx < 0", switch="negative_index_refused")
@doc("Writing Data: the data begin with the write index;")
@doc("silent about an index that was never returned")
def test_negative_index_refused(ue: UserEvents) -> None:
    """A negative index is EINVAL even if nothing is registered; before, it was ENOENT."""
    written = ue.open_data().write_event(-1)
    assert written.errno == ue.dated("negative_index_refused", since="EINVAL", before="ENOENT")


@case(spec="user_events_write_core: tp->key.enabled", switch="ebadf_when_disabled")
@doc("Writing Data: silent about the result of writing a disabled event")
def test_ebadf_when_disabled(ue: UserEvents) -> None:
    """Writing a disabled event is EBADF; before, it returned the length."""
    event = ue.event("u8 a")
    assert event.write(b"\1").value == ue.dated("ebadf_when_disabled", since=-1, before=5)


@case(spec="user_event_ftrace: copy_nofault", switch="empty_payload")
@doc("Writing Data: the data after the index are the payload; silent about events without fields")
def test_empty_payload(ue: UserEvents) -> None:
    """An event without fields is recorded by its index alone; before 6.4 that was EFAULT."""
    event = ue.event(enabled=True)
    assert event.write().errno == ue.dated("empty_payload", since="", before="EFAULT")


@case(needs="perf_sink", switch="bpf_programs_run", bug="bpf-never-runs", facilities="bpf_tracing")
@spec("user_event_bpf, user_event_perf")
@doc("silent; until 5.18-rc1 programs were given a struct user_bpf_context")
def test_bpf_programs_run(ue: UserEvents) -> None:
    """Only the 5.18 merge window runs a BPF program that is attached to an event."""
    event = ue.event("u64 a")
    recorder = Recorder(ue.process)
    attached = recorder.attach(open_perf(ue.process, ue.name(), COUNTING))
    if not ue.profile.has("bpf_programs_run"):
        assert attached.errno == ue.bug("bpf-never-runs", fixed="EINVAL", present="")
    assert event.write(bytes(8)).value == 12
    assert recorder.take().runs == ue.dated("bpf_programs_run", since=1, before=0)
