"""Dated changes of instances, buffers, mounts and perf events."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.eprobes import add_eprobe, remove_eprobe
from conformance.cases.support.instances import create_instance
from conformance.cases.support.perf_samples import with_ring
from conformance.client.credentials import Credentials
from conformance.client.perf import PERIOD, RAW, PerfAttr
from conformance.client.tracefs import ROOT
from conformance.ops.credentials import CLONE_NEWNS

case = surface("dated", doc="ftrace.rst@v6.12: silent", level="detail", isolation="global")


@case(switch="buffers_reset_with_events", facilities="eprobes")
@spec("trace_dynevent.c:dyn_event_release; trace.c:tracing_reset_all_online_cpus")
@doc("@v6.12: Deleting: silent about what was recorded")
def test_buffers_reset_with_events(ue: UserEvents) -> None:
    """Deleting a probe empties the buffer in which an event was enabled that deleted itself."""
    kept = ue.event("u16 a", name="kept", enabled=True)
    # Clear the reset that the deletions of earlier programs left pending.
    assert add_eprobe(ue, event=ue.name("kept")).errno == ""
    assert remove_eprobe(ue).errno == ""
    assert add_eprobe(ue, event=ue.name("kept")).errno == ""
    event = ue.event(enabled=True)
    ue.tracefs.disable(ue.name())
    if ue.profile.has("remote_enable"):
        event.unregister()
    event.data.close()
    if not ue.profile.has("auto_delete"):
        assert ue.open_data().delete(ue.name(), eventually=True).value == 0
    ue.tracefs.status(eventually=True)
    kept.write(b"\2\0")
    assert remove_eprobe(ue).errno == ""
    left = [ue.line("a=0x2 (2)", name="kept", dump="02 00")]
    assert ue.tracefs.bodies() == ue.dated("buffers_reset_with_events", since=[], before=left)


@case(switch="enable_file_holds_instance")
@spec("trace_events.c:ftrace_enable_fops, ftrace_event_filter_fops: tracing_open_file_tr")
def test_enable_file_holds_instance(ue: UserEvents) -> None:
    """An instance whose event has an open `enable` file is EBUSY; before, it was removed."""
    instance = create_instance(ue)
    ue.event()
    path = instance.path(f"events/user_events/{ue.name()}/enable")
    opened, slot = ue.process.open(path, os.O_RDONLY)
    assert opened.value == 0
    removed = instance.remove()
    ue.process.close(slot)
    assert removed.errno == ue.dated("enable_file_holds_instance", since="EBUSY", before="")


@case(switch="empty_cpumask_refused", own_kernel="it compares the mask of all processors")
@spec("trace.c:tracing_cpumask_write")
def test_empty_cpumask_refused(ue: UserEvents) -> None:
    """An empty write to tracing_cpumask is EINVAL; before, it was an empty mask."""
    written = ue.tracefs.write(ue.tracefs.path("tracing_cpumask"), "")
    assert written.errno == ue.dated("empty_cpumask_refused", since="EINVAL", before="")
    assert ue.tracefs.processors == ue.dated("empty_cpumask_refused", since="1\n", before="0\n")


@case(spec="fs/tracefs/inode.c:tracefs_apply_options", switch="remount_keeps_mode")
@doc("@v6.12: silent about tracefs and its modes")
def test_remount_keeps_mode(ue: UserEvents) -> None:
    """Mounting tracefs again without options leaves its mode; before, it became 0700."""
    root = Credentials(ue.new_process())
    root.unshare(CLONE_NEWNS)
    root.chmod(ROOT, 0o750)
    assert root.remount(ROOT).value == 0
    assert ue.tracefs.mode(ROOT) == ue.dated("remount_keeps_mode", since=0o750, before=0o700)


@case(isolation="events", needs="perf_sink", switch="first_period_counted", facilities="perf")
@doc("include/uapi/linux/perf_event.h@v6.12:perf_event_attr: sample_period is how many events")
@doc("there are to a sample")
@spec("kernel/trace/trace_event_perf.c:perf_trace_add: perf_swevent_set_period")
def test_first_period_counted(ue: UserEvents) -> None:
    """The first of three records is no sample of period three; before, it was two."""
    event, _, ring = with_ring(ue, attr=PerfAttr(period=3, sample_type=RAW))
    event.write(bytes(4))
    twice = ["SAMPLE misc 1 size 24 raw 12: 00 00 00 00"] * 2
    assert ring.records() == ue.dated("first_period_counted", since=[], before=twice)


@case(isolation="events", needs="perf_sink", switch="raw_data_if_asked", facilities="perf")
@doc("include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_SAMPLE: the raw record is a member")
@doc("if PERF_SAMPLE_RAW is set")
@spec("include/linux/perf_event.h:perf_sample_save_raw_data")
def test_raw_data_if_asked(ue: UserEvents) -> None:
    """A sample of a period has 16 bytes; for some releases, 16 more for a raw record."""
    event, _, ring = with_ring(ue, attr=PerfAttr(sample_type=PERIOD))
    event.write(bytes(4))
    longer = "SAMPLE misc 1 size 32 period 1 rest" + " 00" * 16
    sample = ue.dated("raw_data_if_asked", since="SAMPLE misc 1 size 16 period 1", before=longer)
    assert ring.records() == [sample]
