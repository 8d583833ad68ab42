"""Cases that change guest-wide state and do not restore it; each begins by checking all of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from conformance.abi.uapi import USER_EVENT_REG_PERSIST
from conformance.cases.case import surface, variants
from conformance.client.credentials import Credentials
from conformance.client.tracefs import (
    DATA,
    DYNAMIC_EVENTS,
    ERROR_LOG,
    EVENTS,
    KPROBE_EVENTS,
    KPROBES,
    MAXIMUM,
    ROOT,
    SNAPSHOT,
    SYSTEM,
    TRACE,
    TRACING_ON,
    EventDirectory,
)
from conformance.client.user_events import UserEvents
from conformance.ops.credentials import CLONE_NEWNS
from tests.drills.provoke import behind

case = surface("drill", level="contract")
KERNEL_EVENT = ("signal_generate", "signal")
# Texts of files in a guest that nothing has changed, or parts of them.
CLEAN = {
    TRACING_ON: "1\n",
    MAXIMUM: "32768\n",
    f"{ROOT}/tracing_cpumask": "1\n",
    f"{ROOT}/set_event": "",
    f"{ROOT}/set_event_pid": "",
    f"{ROOT}/set_event_notrace_pid": "",
    f"{ROOT}/events/signal/signal_generate/enable": "0\n",
    DYNAMIC_EVENTS: "",
    KPROBE_EVENTS: "",
    ERROR_LOG: "",
    SNAPSHOT: "* Snapshot is freed *",
    TRACE: "entries-in-buffer/entries-written: 0/0 ",
}
# Some user events of earlier cases wait for the kernel to drop a reference.
OWN_EVENT = re.compile(r"^u:.*\n", re.MULTILINE)
MODES = {ROOT: "40700 0:0", DATA: "100640 0:0", DYNAMIC_EVENTS: "100640 0:0"}


def changed(ue: UserEvents) -> list[str]:
    """Differences from a new guest, read unseen by the model."""
    ue.lockstep.catch_up()
    channel = behind(ue)
    calls: list[list[object]] = [["slurp", path, 1 << 16] for path in CLEAN]
    calls += [["list", f"{ROOT}/instances"], ["slurp", "/proc/self/mounts", 1 << 16]]
    calls += [["status", path] for path in MODES]
    texts = [bytes.fromhex(each["data"] or "").decode() for each in channel.call("root", calls)]
    instances, mounts, *modes = texts[len(CLEAN) :]
    shown = {path: OWN_EVENT.sub("", text) for path, text in zip(CLEAN, texts, strict=False)}
    found = [
        f"{path}: {shown[path]!r}"
        for path, clean in CLEAN.items()
        if (clean not in shown[path] if clean else shown[path])
    ]
    found += [f"instances {instances}"] * bool(instances)
    found += [line for line in mounts.splitlines() if " /run/" in line or "tracefs ro" in line]
    return found + [
        f"{path}: {mode}" for path, mode in zip(MODES, modes, strict=True) if mode != MODES[path]
    ]


def check_clean(ue: UserEvents) -> None:
    """Fail the case in a guest that an earlier one changed."""
    if found := changed(ue):
        raise AssertionError("; ".join(found))


def event(ue: UserEvents, stem: str = "e") -> EventDirectory:
    """An event with two fields."""
    ue.open_data().register(f"{ue.name(stem)} u8 a; u8 b")
    return ue.tracefs.directory(ue.name(stem))


def trigger(ue: UserEvents, text: str) -> None:
    """Set a trigger, and let it fire."""
    data = ue.open_data()
    data.register(f"{ue.name()} u8 a")
    assert ue.tracefs.directory(ue.name()).trigger(text).errno == ""
    assert data.write_event(0, b"\1").value == 5


def administrator(ue: UserEvents) -> Credentials:
    """A process with mounts of its own."""
    root = Credentials(ue.new_process())
    root.unshare(CLONE_NEWNS)
    return root


def tracing_off(ue: UserEvents) -> None:
    """tracing_on."""
    assert ue.tracefs.write(TRACING_ON, "0\n").value == 2


def traceoff(ue: UserEvents) -> None:
    """tracing_on, by a trigger; the trigger stays."""
    trigger(ue, "traceoff")


def cpumask(ue: UserEvents) -> None:
    """tracing_cpumask."""
    assert ue.tracefs.set_processors("0").errno == ""


def maximum(ue: UserEvents) -> None:
    """user_events_max."""
    assert ue.tracefs.write(MAXIMUM, "7\n").value == 2


def records(ue: UserEvents) -> None:
    """A record, of an event that stays enabled and persists."""
    data = ue.open_data()
    data.register(f"{ue.name()} u8 a", flags=USER_EVENT_REG_PERSIST)
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\1").value == 5
    assert ue.tracefs.records() == [ue.line("a=(1)")]


def set_event(ue: UserEvents) -> None:
    """set_event."""
    event(ue)
    assert ue.tracefs.write(f"{ROOT}/set_event", f"user_events:{ue.name()}\n").errno == ""


def kernel_event(ue: UserEvents) -> None:
    """`enable` of an event of the kernel."""
    assert ue.tracefs.enable(KERNEL_EVENT[0], system=KERNEL_EVENT[1]).errno == ""


def kernel_event_by_trigger(ue: UserEvents) -> None:
    """The same, by a trigger."""
    trigger(ue, "enable_event:signal:signal_generate")


def pid_lists(ue: UserEvents) -> None:
    """set_event_pid and set_event_notrace_pid."""
    for file in ("set_event_pid", "set_event_notrace_pid"):
        assert ue.process.write_pid(ue.tracefs.path(file)).errno == ""


def snapshot(ue: UserEvents) -> None:
    """The spare buffer."""
    trigger(ue, "snapshot")


def filters(ue: UserEvents) -> None:
    """Filters of an event and of its system, and error_log."""
    directory = event(ue)
    assert directory.set_filter("a == 1").errno == ""
    assert directory.set_filter("nope == 1").errno == "EINVAL"
    assert ue.tracefs.write(f"{EVENTS}/filter", "a == 1\n").value == 7


def histograms(ue: UserEvents) -> None:
    """Histograms that refer to a variable, at the top and in an instance that it keeps busy."""
    instance = ue.instance()
    instance.make()
    for stem in ("e", "other"):
        event(ue, stem)
    for files in (ue.tracefs, instance):
        first, second = (files.directory(ue.name(stem)) for stem in ("e", "other"))
        assert first.trigger("hist:keys=a:x=b").errno == ""
        assert second.trigger("hist:keys=a:vals=$x").errno == ""
    assert instance.remove().errno == "EBUSY"


def instance(ue: UserEvents) -> None:
    """An instance with an enabled event, a file of which a process has open."""
    event(ue)
    instance = ue.instance()
    instance.make()
    instance.enable(ue.name())
    ue.new_process().open(instance.path("tracing_on"), os.O_RDWR)


def probes(ue: UserEvents) -> None:
    """A kprobe, and an eprobe that is enabled."""
    event(ue)
    assert ue.tracefs.add_kprobe(ue.name("k"), "user_events_write").errno == ""
    eprobe = ue.name("p")
    assert ue.tracefs.command(f"e:{KPROBES}/{eprobe} {SYSTEM}.{ue.name()} a=$a\n").errno == ""
    assert ue.tracefs.enable(eprobe, system=KPROBES).errno == ""


def synthetic_event(ue: UserEvents) -> None:
    """A synthetic event that is enabled, and the histogram that makes it."""
    assert ue.tracefs.command(f"s:{ue.name('made')} u8 x\n").errno == ""
    assert ue.tracefs.enable(ue.name("made"), system="synthetic").errno == ""
    text = f"hist:keys=a:x=b:onmax($x).trace({ue.name('made')},$x)"
    assert event(ue).trigger(text).errno == ""


def modes(ue: UserEvents) -> None:
    """Modes and owners."""
    root = Credentials(ue.new_process())
    for path in (ROOT, DATA, DYNAMIC_EVENTS):
        assert root.chmod(path, 0o707).errno == ""
        assert root.chown(path, 1000, 1000).errno == ""


def read_only(ue: UserEvents) -> None:
    """The superblock, read-only; tracing is off before."""
    tracing_off(ue)
    assert administrator(ue).remount(ROOT, read_only=True).errno == ""


def options(ue: UserEvents) -> None:
    """The superblock, with a group and a mode."""
    assert administrator(ue).remount(ROOT, "gid=1000,mode=711").errno == ""


LEAVES: tuple[Callable[[UserEvents], None], ...] = (
    tracing_off,
    traceoff,
    cpumask,
    maximum,
    records,
    set_event,
    kernel_event,
    kernel_event_by_trigger,
    pid_lists,
    snapshot,
    filters,
    histograms,
    instance,
    probes,
    synthetic_event,
    modes,
    read_only,
    options,
)


@case
@variants({each.__name__: each for each in LEAVES}, quick=len(LEAVES))
def test_leaves(ue: UserEvents, leave: Callable[[UserEvents], None]) -> None:
    """The guest is clean, and the case changes something."""
    assert ue.process
    check_clean(ue)
    leave(ue)
    assert changed(ue)


@case
def test_leaves_nothing(ue: UserEvents) -> None:
    """The guest is clean before a case that changes nothing."""
    data = ue.open_data()
    check_clean(ue)
    assert data.register(ue.name()).index == 0
