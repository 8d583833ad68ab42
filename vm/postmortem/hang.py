"""Why a guest gives no answer, looked at from outside while it is still there.

QEMU's process first, then its monitor, then what the processors do.  A processor that spins in the
kernel is interrupted by an NMI, which `unknown_nmi_panic` turns into a panic with its stack; with
all of them idle the kernel is asked by BREAK and t on its console, as sysrq is on a serial line,
for the stacks of all tasks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from host.deadline import Deadline
from host.errors import DeadlineExpired
from vm.errors import Party
from vm.kernel_log.lines import messages
from vm.kernel_log.stack_traces import TOP, frames
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import MonitorTrouble

#: Looks at the processors, and the seconds between them: who works comes to another place.
_LOOKS, _BETWEEN = 4, 0.03
#: Seconds of an unhurried machine for the monitor's answer, and for what the kernel says then.
_ANSWER, _SAYING = 0.5, 2.0
#: Lines that are kept.
_KEPT = 120
#: A thread that gets less of the time than this, and waits for more than that, is kept from
#: running by the host; with more it had enough for what was asked.
_RAN, _WAITED = 0.1, 0.5
#: One that wants less than this of the time emulates or runs no busy processor.
_BUSY = 0.2
_CPU = re.compile(r"RIP=([0-9a-f]+) RFL=[0-9a-f]+ .*?CPL=(\d).*?HLT=(\d)")
#: The last that the kernel says to sysrq, and to an NMI.
_TASKS_SAID = re.compile(r"Showing busy workqueues|operation is disabled|sysrq: HELP")
_NMI_SAID = re.compile(r"Kernel Offset: |end Kernel panic|Dazed and confused")
_TASK = re.compile(r"task:(.{1,16}?) +state:(\S) .*? pid:\s*(\d+) .*?ppid:\s*(\d+)")
#: Who asks the agent's processes to work, and who starts those of the kernel.
_SUPERVISOR, _KTHREADD = "1", "2"
_STOPPED = "Tt"
#: kernel/sched/idle.c
_IDLE = frozenset({"do_idle", "default_idle_call", "cpu_startup_entry", "cpuidle_idle_call"})
#: How the agent's own processes wait: for a request, for each other.
_WAITING = frozenset(
    {"port_fops_read", "port_fops_poll", "wait_port_readable", "do_sys_poll", "do_poll"}
    | {"futex_wait", "__futex_wait", "do_futex", "futex_do_wait", "do_wait", "kernel_wait4"}
    | {"pipe_read", "anon_pipe_read"}
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Who, in words where, the functions of the stack, and what was seen, in lines."""

    party: Party
    where: str
    frames: tuple[str, ...] = ()
    seen: str = ""


def diagnose(
    power: PowerCycle, console: Console | None, before: CpuTime, slowness: float
) -> Diagnosis:
    """Look for what keeps a guest from answering; `before` is what QEMU's threads had got then.

    Without a console the kernel is asked nothing.  The guest may be of no use afterwards.
    Raises MonitorTrouble if QEMU ends meanwhile.
    """
    if power.qemu.stopped():
        return Diagnosis(Party.HOST, "QEMU is stopped, by a signal or a debugger")
    if kept := kept_from_running(before, power.qemu.cpu_time()):
        return Diagnosis(Party.HOST, kept)
    try:
        status = power.monitor.status(Deadline(_ANSWER * slowness, "answer of its monitor"))
        if status != "running":
            return Diagnosis(Party.HOST, f"QEMU has stopped the machine: {status}")
        found = _of_processors(power, console, slowness)
        ran, waited = _wanted(before, power.qemu.cpu_time())
        return replace(
            found, seen=f"QEMU ran for {ran:.1f} s and waited for {waited:.1f} s\n{found.seen}"
        )
    except MonitorTrouble as trouble:
        if not power.qemu.alive():
            raise
        return Diagnosis(Party.HOST, f"QEMU is stuck: {trouble}")


def kept_from_running(
    before: CpuTime, after: CpuTime, ran_less: float = _RAN, waited_more: float = _WAITED
) -> str:
    """What the host withholds from a QEMU that wants to run, in words; "" if nothing.

    That is when it ran for less than a part of the time, and waited for more than another.
    """
    elapsed = after.when - before.when
    ran, waited = _wanted(before, after)
    if ran < ran_less * elapsed and waited > waited_more * elapsed:
        return f"the host let QEMU run for {ran:.1f} of the last {elapsed:.1f} s"
    return ""


def _wanted(before: CpuTime, after: CpuTime) -> tuple[float, float]:
    """Seconds that the thread which wants most ran and waited: that of a busy processor."""
    shares = [(0.0, 0.0)]
    for thread, (ran, waited) in after.threads.items():
        ran_before, waited_before = before.threads.get(thread, (0.0, 0.0))
        shares.append((ran - ran_before, waited - waited_before))
    return max(shares, key=sum)


def _of_processors(power: PowerCycle, console: Console | None, slowness: float) -> Diagnosis:
    before = power.qemu.cpu_time()
    looks = []
    for _ in range(_LOOKS):
        looks.append(_look(power, slowness))
        time.sleep(_BETWEEN)
    after = power.qemu.cpu_time()
    said = [f"registers: {', '.join(map(str, look))}" for look in looks]
    busy = [cpu for cpu in zip(*looks, strict=False) if not any(look.idle for look in cpu)]
    if after.threads and sum(_wanted(before, after)) < _BUSY * (after.when - before.when):
        # KVM keeps to itself which processors are halted; but they want nothing of the host.
        busy = []
    stuck = [cpu for cpu in busy if all(look.in_kernel for look in cpu)]
    if console is None:
        doing = "spins" if stuck else "computes" if busy else "idles"
        return Diagnosis(Party.KERNEL, f"a processor {doing}", seen="\n".join(said))
    since = console.position()
    if stuck:
        power.monitor.nmi(Deadline(_ANSWER * slowness, "NMI"))
        return _stuck(_lines(power, console, since, _NMI_SAID, slowness), said, stuck[0][0])
    if busy:
        addresses = ", ".join(dict.fromkeys(f"{look.address:#x}" for look in busy[0]))
        return Diagnosis(Party.AGENT, f"a program computes at {addresses}", seen="\n".join(said))
    heard = _ask(power, console, "t", slowness)
    lines = _lines(power, console, since, _TASKS_SAID, slowness) if heard else []
    return _asleep(lines, said)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a processor did at a moment."""

    address: int
    in_kernel: bool
    idle: bool

    def __str__(self) -> str:
        mode = "idle" if self.idle else "kernel" if self.in_kernel else "program"
        return f"{mode} {self.address:#x}"


def _look(power: PowerCycle, slowness: float) -> list[_Look]:
    shown = power.monitor.registers(Deadline(_ANSWER * slowness, "registers"))
    return [
        _Look(int(address, 16), level == "0", halted == "1")
        for address, level, halted in _CPU.findall(shown)
    ]


def _ask(power: PowerCycle, console: Console, key: str, slowness: float) -> bool:
    """Press a key of sysrq on the console, which no input leads to before; whether it was heard."""
    with TemporaryDirectory(prefix="uevt-") as scratch:
        line = Path(scratch, "line")
        os.mkfifo(line, 0o600)
        began = console.position()
        # Opened for both, so that nobody waits for a reader.
        end = os.open(line, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            power.monitor.press_break(line, console.path, Deadline(_ANSWER * slowness, "BREAK"))
            os.write(end, key.encode())
            deadline = Deadline(_ANSWER * slowness, "word after BREAK")
            with suppress(DeadlineExpired):
                while console.position() == began:
                    deadline.pause()
        finally:
            os.close(end)
    return console.position() > began


def _lines(
    power: PowerCycle,
    console: Console,
    since: int,
    last: re.Pattern[str],
    slowness: float,
) -> list[str]:
    """What the kernel says after a position, until it says the last of it or ends."""
    deadline = Deadline(_SAYING * slowness, "word of the kernel")
    with suppress(DeadlineExpired):
        while power.qemu.alive() and not last.search(console.text(since)):
            deadline.pause(0.02)
    return [message.text.rstrip() for message in messages(console.text(since))]


def _stuck(lines: Sequence[str], said: list[str], cpu: _Look) -> Diagnosis:
    """A processor spins in the kernel; `lines` are what it said to the NMI."""
    found = frames(lines)
    if _IDLE & set(found):
        return Diagnosis(Party.AGENT, "all processors are idle", seen=_evidence(said, lines))
    place = " < ".join(found[:TOP]) or f"{cpu.address:#x}"
    who = next(
        (
            each[1]
            for line in lines
            if (each := re.search(r"Comm: (.{1,15}?) +(?:Not t|T)ainted", line))
        ),
        "",
    )
    where = f"a processor spins in the kernel, in {place}" + (f" ({who})" if who else "")
    return Diagnosis(Party.KERNEL, where, found, _evidence(said, lines))


def _asleep(lines: Sequence[str], said: list[str]) -> Diagnosis:
    """Every processor is idle; `lines` show where all tasks sleep."""
    asleep = _programs(lines)
    evidence = _evidence(said, [line for task in asleep for line in task])
    for task in asleep:
        found = frames(task)
        head = _TASK.match(task[0])
        if head is None or head[2] in _STOPPED:
            continue
        if found and not _WAITING & {each for line in task for each in _symbols(line)}:
            where = (
                f"{head[1]} sleeps in the kernel (state {head[2]}), in {' < '.join(found[:TOP])}"
            )
            return Diagnosis(Party.KERNEL, where, found, evidence)
    if not asleep:
        return Diagnosis(
            Party.KERNEL, "all processors are idle, and BREAK had no answer", seen=evidence
        )
    return Diagnosis(Party.AGENT, "every program of the guest waits for another", seen=evidence)


def _programs(lines: Sequence[str]) -> list[list[str]]:
    """The lines about each task that performs calls, the last started first."""
    tasks: list[list[str]] = []
    inside = False
    for line in lines:
        if head := _TASK.match(line):
            inside = head[3] not in (_SUPERVISOR, _KTHREADD) and head[4] != _KTHREADD
            if inside:
                tasks.append([line])
        elif inside:
            tasks[-1].append(line)
            inside = "</TASK>" not in line
    return tasks[::-1]


def _symbols(line: str) -> Iterable[str]:
    return re.findall(r"([A-Za-z_]\w*)(?:\.[\w.]+)?\+0x", line)


def _evidence(said: Sequence[str], lines: Sequence[str]) -> str:
    left_out = len(lines) - _KEPT
    kept = [*lines[:_KEPT], f"[{left_out} lines left out]"] if left_out > 0 else list(lines)
    return "\n".join([*said, *kept])
