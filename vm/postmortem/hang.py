"""Diagnose a guest that gives no answer, from outside while it still exists.

Check the QEMU process, then its monitor, then the processors.  A processor that spins in the kernel
gets an NMI, which `unknown_nmi_panic` turns into a panic with its stack.  If all processors are
idle, BREAK and t on the console (SysRq on a serial line) print the stacks of all tasks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from host.deadline import Deadline
from host.errors import DeadlineExpired
from host.temporary_directories import scratch
from vm.errors import Party
from vm.kernel_log.lines import messages
from vm.kernel_log.stack_traces import TOP, frames
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import MonitorTrouble

#: Minimum number of register samples, and seconds between them.
_SAMPLES, _INTERVAL_S = 4, 0.03
#: A busy processor is sampled until its thread has run this long, in seconds on an idle host with
#: KVM: while the host lets it wait it stays in the state it was in.
_SAMPLED_S = 0.02
#: Limits for the monitor and for the kernel's output, in seconds on an idle host with KVM.
_ANSWER_S, _OUTPUT_S = 0.5, 2.0
#: Maximum number of lines kept as evidence.
_MAX_LINES = 120
#: A thread is starved by the host if it ran for less than the first share of the time and waited
#: for a processor for more than the second.
_RAN, _WAITED = 0.1, 0.5
#: A thread that wants less than this share of the time runs no busy virtual processor.
_BUSY = 0.2
_CPU = re.compile(r"RIP=([0-9a-f]+) RFL=[0-9a-f]+ .*?CPL=(\d).*?HLT=(\d)")
#: Last lines of the output of SysRq-t and of an NMI.
_END_OF_TASKS = re.compile(r"Showing busy workqueues|operation is disabled|sysrq: HELP")
_END_OF_NMI = re.compile(r"Kernel Offset: |end Kernel panic|Dazed and confused")
_TASK = re.compile(r"task:(.{1,16}?) +state:(\S) .*? pid:\s*(\d+) .*?ppid:\s*(\d+)")
_SCHEDULE = re.compile(r"\bschedule\+0x")
_COMM = re.compile(r"Comm: (.{1,15}?) +(?:Not t|T)ainted")
_SUPERVISOR, _KTHREADD = "1", "2"
_STOPPED = "Tt"
#: kernel/sched/idle.c
_IDLE = frozenset({"do_idle", "default_idle_call", "cpu_startup_entry", "cpuidle_idle_call"})
#: Functions in which the agent's processes wait for a request or for each other.
_WAITING = frozenset(
    {"port_fops_read", "port_fops_poll", "wait_port_readable", "do_sys_poll", "do_poll"}
    | {"futex_wait", "__futex_wait", "do_futex", "futex_do_wait", "do_wait", "kernel_wait4"}
    | {"pipe_read", "anon_pipe_read"}
)


class Diagnosis(Struct, frozen=True):
    """The responsible party, a description, the kernel stack, and the evidence as text."""

    party: Party
    where: str
    frames: tuple[str, ...] = ()
    seen: str = ""


def diagnose(
    power: PowerCycle, console: Console | None, before: CpuTime, slowness: float
) -> Diagnosis:
    """Find out what keeps a guest from answering; it may be unusable afterwards.

    `before` is an earlier CPU time of QEMU.  Without a console the kernel is not interrupted.
    Raises MonitorTrouble if QEMU ends meanwhile.
    """
    if power.qemu.stopped():
        return Diagnosis(Party.HOST, "QEMU is stopped, by a signal or a debugger")
    if why := starved(before, power.qemu.cpu_time()):
        return Diagnosis(Party.HOST, why)
    try:
        status = power.monitor.status(Deadline(_ANSWER_S * slowness, "answer of its monitor"))
        if status != "running":
            return Diagnosis(Party.HOST, f"QEMU has stopped the machine: {status}")
        found = _diagnose_processors(power, console, slowness)
        ran, waited = _busiest(before, power.qemu.cpu_time())
        return replace(
            found, seen=f"QEMU ran for {ran:.1f} s and waited for {waited:.1f} s\n{found.seen}"
        )
    except MonitorTrouble as trouble:
        if not power.qemu.alive():
            raise
        return Diagnosis(Party.HOST, f"QEMU is stuck: {trouble}")


def starved(
    before: CpuTime, after: CpuTime, ran_less: float = _RAN, waited_more: float = _WAITED
) -> str:
    """A message if the host gave QEMU too little CPU time, else "".

    The limits are shares of the elapsed time.
    """
    elapsed = after.when - before.when
    ran, waited = _busiest(before, after)
    if ran < ran_less * elapsed and waited > waited_more * elapsed:
        return f"the host let QEMU run for {ran:.1f} of the last {elapsed:.1f} s"
    return ""


def _busiest(before: CpuTime, after: CpuTime) -> tuple[float, float]:
    """Seconds that the thread with the largest demand ran and waited."""
    demands = [(0.0, 0.0)]
    for thread, (ran, waited) in after.threads.items():
        ran_before, waited_before = before.threads.get(thread, (0.0, 0.0))
        demands.append((ran - ran_before, waited - waited_before))
    return max(demands, key=sum)


def _diagnose_processors(power: PowerCycle, console: Console | None, slowness: float) -> Diagnosis:
    samples, busy = _busy_processors(power, slowness)
    evidence = list(
        dict.fromkeys(f"registers: {', '.join(map(str, sample))}" for sample in samples)
    )
    spinning = [cpu for cpu in busy if all(sample.in_kernel for sample in cpu)]
    if console is None:
        state = "spins" if spinning else "computes" if busy else "idles"
        return Diagnosis(Party.KERNEL, f"a processor {state}", seen="\n".join(evidence))
    since = console.position()
    if spinning:
        power.monitor.nmi(Deadline(_ANSWER_S * slowness, "NMI"))
        output = _output(power, console, since, _END_OF_NMI, slowness)
        return _diagnose_spin(output, evidence, spinning[0][0])
    if busy:
        addresses = ", ".join(dict.fromkeys(f"{sample.address:#x}" for sample in busy[0]))
        return Diagnosis(
            Party.AGENT, f"a program computes at {addresses}", seen="\n".join(evidence)
        )
    reacted = _press_sysrq(power, console, "t", slowness)
    output = _output(power, console, since, _END_OF_TASKS, slowness) if reacted else []
    return _diagnose_sleep(output, evidence)


class _Sample(Struct, frozen=True):
    """State of a processor at a moment."""

    address: int
    in_kernel: bool
    idle: bool

    def __str__(self) -> str:
        mode = "idle" if self.idle else "kernel" if self.in_kernel else "program"
        return f"{mode} {self.address:#x}"


def _busy_processors(
    power: PowerCycle, slowness: float
) -> tuple[list[list[_Sample]], list[tuple[_Sample, ...]]]:
    """All samples, and those of the processors that were never idle."""
    before = power.qemu.cpu_time()
    limit = Deadline(_OUTPUT_S * slowness, "samples of registers")
    samples: list[list[_Sample]] = []
    while True:
        samples.append(_sample(power, slowness))
        time.sleep(_INTERVAL_S)
        busy = [
            cpu for cpu in zip(*samples, strict=False) if not any(sample.idle for sample in cpu)
        ]
        if not busy:
            return samples, []
        if len(samples) < _SAMPLES:
            continue
        after = power.qemu.cpu_time()
        ran, waited = _busiest(before, after)
        if after.threads and ran + waited < _BUSY * (after.when - before.when):
            # KVM does not report halted processors, but they use no CPU time.
            return samples, []
        if not after.threads or ran >= _SAMPLED_S * slowness or limit.expired:
            return samples, busy


def _sample(power: PowerCycle, slowness: float) -> list[_Sample]:
    registers = power.monitor.registers(Deadline(_ANSWER_S * slowness, "registers"))
    return [
        _Sample(int(address, 16), level == "0", halted == "1")
        for address, level, halted in _CPU.findall(registers)
    ]


def _press_sysrq(power: PowerCycle, console: Console, key: str, slowness: float) -> bool:
    """Send BREAK and a key to the console; whether the kernel printed anything."""
    with scratch() as directory:
        line = directory / "line"
        os.mkfifo(line, 0o600)
        began = console.position()
        # O_RDWR, so that opening does not wait for a reader.
        end = os.open(line, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            power.monitor.press_break(line, console.path, Deadline(_ANSWER_S * slowness, "BREAK"))
            os.write(end, key.encode())
            deadline = Deadline(_ANSWER_S * slowness, "output after BREAK")
            with suppress(DeadlineExpired):
                while console.position() == began:
                    deadline.pause()
        finally:
            os.close(end)
    return console.position() > began


def _output(
    power: PowerCycle, console: Console, since: int, last: re.Pattern[str], slowness: float
) -> list[str]:
    """Wait for a last line and return the lines since a position, without stamps."""
    deadline = Deadline(_OUTPUT_S * slowness, "kernel output")
    with suppress(DeadlineExpired):
        while power.qemu.alive() and not last.search(console.text(since)):
            deadline.pause(0.02)
    return [message.text.rstrip() for message in messages(console.text(since))]


def _diagnose_spin(lines: Sequence[str], evidence: list[str], sample: _Sample) -> Diagnosis:
    """Diagnose a processor that spins in the kernel, from its output after an NMI."""
    seen = _with_lines(evidence, lines)
    found = frames(lines)
    if _IDLE & set(found):
        return Diagnosis(Party.AGENT, "all processors are idle", seen=seen)
    place = " < ".join(found[:TOP]) or f"{sample.address:#x}"
    task = next((match[1] for line in lines if (match := _COMM.search(line))), "")
    where = f"a processor spins in the kernel, in {place}" + (f" ({task})" if task else "")
    return Diagnosis(Party.KERNEL, where, found, seen)


def _diagnose_sleep(lines: Sequence[str], evidence: list[str]) -> Diagnosis:
    """Diagnose a guest with idle processors, from the stacks of its tasks."""
    tasks = _program_tasks(lines)
    seen = _with_lines(evidence, [line for task in tasks for line in task])
    for task in tasks:
        found = frames(_without_scheduler(task))
        head = _TASK.match(task[0])
        if head is None or head[2] in _STOPPED:
            continue
        if found and not _WAITING & {symbol for line in task for symbol in _symbols(line)}:
            where = (
                f"{head[1]} sleeps in the kernel (state {head[2]}), in {' < '.join(found[:TOP])}"
            )
            return Diagnosis(Party.KERNEL, where, found, seen)
    if not tasks:
        return Diagnosis(Party.KERNEL, "all processors are idle, no answer to BREAK", seen=seen)
    return Diagnosis(Party.AGENT, "every program of the guest waits for another", seen=seen)


def _without_scheduler(task: list[str]) -> list[str]:
    """The lines of a sleeping task from schedule() on.

    A guessed stack has stale addresses between the frames of the scheduler.
    """
    for number, line in enumerate(task):
        if _SCHEDULE.search(line):
            return [task[0], "Call Trace:", *task[number:]]
    return task


def _program_tasks(lines: Sequence[str]) -> list[list[str]]:
    """The lines about each task that is no kernel thread and not the supervisor, newest first."""
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


def _symbols(line: str) -> list[str]:
    return re.findall(r"([A-Za-z_]\w*)(?:\.[\w.]+)?\+0x", line)


def _with_lines(evidence: Sequence[str], lines: Sequence[str]) -> str:
    left_out = len(lines) - _MAX_LINES
    kept = [*lines[:_MAX_LINES], f"[{left_out} lines left out]"] if left_out > 0 else list(lines)
    return "\n".join([*evidence, *kept])
