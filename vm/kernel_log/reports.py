"""Recognize kernel reports (panics, warnings, lockdep splats …) and boot phases on a console.

The patterns are strings of the kernel sources, in all their historical forms.  They match only at
the start of a message and are longer than the name of a process (15 bytes), so that no process name
can forge a report.  Captured logs in fixtures/console/ test them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from host.kernel_reports import ReportKind
from vm.kernel_log import stack_traces
from vm.kernel_log.lines import Message, messages


class Phase(StrEnum):
    """Phases of a boot, in order."""

    SILENT = "silent"
    KERNEL = "kernel"
    ROOT = "root"
    INIT = "init"


class Finding(Struct, frozen=True):
    """One report: its kind, and number and text of its first line.

    `frames` are the functions of its stack, `task` is the name of the process, `work` the work
    function of a kworker, and `mark` the text of the last mark before the report ("" if none).
    """

    kind: ReportKind
    line: int
    text: str
    frames: tuple[str, ...] = ()
    task: str = ""
    work: str = ""
    mark: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for reports of one cause: see `vm.kernel_log.stack_traces.fingerprint`."""
        if self.kind is ReportKind.OUT_OF_MEMORY:
            # The allocating and the killed process are random.
            return self.kind.value
        return stack_traces.fingerprint(self.kind, self.frames, self.text)


#: Kinds whose headline is the cause; their stacks are not significant.
_WITHOUT_STACK = frozenset({ReportKind.PANIC, ReportKind.INIT_DIED, ReportKind.OUT_OF_MEMORY})
#: Maximum number of findings in one text.
MAX_FINDINGS = 64
#: Maximum number of lines of a report.
_MAX_LINES = 250
#: A stack follows the headline of an unknown report within this many lines.
_STACK_WITHIN = 8

# The first match decides, so special patterns precede general ones.
_PATTERNS: tuple[tuple[ReportKind, str], ...] = (
    # mm/oom_kill.c: starts with the name of a process.
    (
        ReportKind.OUT_OF_MEMORY,
        r".{1,15} invoked oom-killer: gfp_mask="
        r"|(?:Memory cgroup o|O)ut of memory: Killed process \d",
    ),
    # kernel/exit.c: do_exit.  Process 1, the agent, has ended.
    (ReportKind.INIT_DIED, r"Kernel panic - not syncing: Attempted to kill init!"),
    (ReportKind.PANIC, r"Kernel panic - not syncing"),
    (ReportKind.KASAN, r"BUG: K(?:A|C|M)SAN: [\w-]+ in |BUG: KFENCE: [\w ,-]+ in "),
    (ReportKind.UBSAN, r"UBSAN: [\w -]+ in \S+:\d+"),
    (ReportKind.SOFT_LOCKUP, r"(?:watchdog: )?BUG: soft lockup - CPU#\d+ stuck"),
    (ReportKind.HARD_LOCKUP, r"(?:NMI )?(?:watchdog: )?Watchdog detected hard LOCKUP on cpu \d"),
    (
        ReportKind.RCU_STALL,
        r"(?:rcu: )?INFO: rcu\w* (?:detected (?:expedited )?stalls?|self-detected stall) on ",
    ),
    (ReportKind.HUNG_TASK, r"INFO: task .+:\d+ (?:is )?blocked .*for more than \d+ seconds"),
    (
        ReportKind.LOCKDEP,
        r"(?:WARNING|INFO|BUG): (?:possible (?:circular|recursive|irq) lock"
        r"|inconsistent lock state|bad unlock balance"
        r"|suspicious RCU usage|lock held when returning|held lock freed|Invalid wait context"
        r"|\S+-safe -> \S+-unsafe lock order|Nested lock was not taken|bad contention detected"
        r"|chain_key collision|.+/\d+ still has locks held!|trying to register non-static key"
        r"|MAX_LOCKDEP_|MAX_LOCK_DEPTH|key \S+ (?:not|has not))"
        r"|\[ BUG: Invalid wait context \]",
    ),
    (
        ReportKind.OOPS,
        r"BUG: (?:unable to handle |kernel NULL pointer dereference)|kernel BUG at \S+:\d+!"
        # arch/x86/kernel/dumpstack.c: __die_header appends a counter.
        r"|(?:Oops|Internal error|general protection fault|invalid opcode|divide error"
        r"|double fault|stack segment|int3|alignment check|control protection|UBSAN)\b.*"
        r": [0-9a-f]{4,16} \[#\d+\](?: [A-Z]|\s*$)"
        r"|(?:traps: )?PANIC: double fault, error_code:"
        # arch/{arm64,riscv}/mm/fault.c: die_kernel_fault; loongarch: no_context.
        r"|(?:CPU \d+ )?Unable to handle kernel [\w ]+ at virtual address [0-9a-f]{8}"
        # arch/riscv/kernel/traps.c: die
        r"|(?:Oops(?: - [\w ()-]+)?|Kernel BUG) \[#\d+\]\s*$"
        # arch/loongarch/kernel/traps.c: die
        r"|(?:Oops|Kernel|FP|Break|Reserved|do_\w+)[\w !-]*\[#\d+\]:\s*$",
    ),
    (ReportKind.LEAK, r"kmemleak: \d+ new suspected memory leaks"),
    # mm/slub.c: "BUG kmalloc-64 (Not tainted): …", without a colon after BUG.
    (
        ReportKind.BUG,
        r"BUG \S+ \((?:Not tainted|Tainted: [^)]*)\): "
        r"|BUG: (?:sleeping function called from|scheduling while atomic: |workqueue lockup - "
        r"|Bad (?:page (?:state|map)|rss-counter state) |spinlock |rwlock |using \w+\(\) in pre"
        r"|non-zero pgtables_bytes|(?:TASK |stack )?stack guard page was hit|Dentry "
        # kernel/trace/trace_events_user.c
        r"|Auto-delete engaged on persistent event|Bad current_user_events)",
    ),
    # Before 6.18 "WARNING: CPU: 0 PID: 1 at file:line func"; since then the location comes first.
    (ReportKind.WARN, r"WARNING: (?:CPU: \d+ PID: \d+ at |\S+:\d+ at |\S+ at \S+:\d+)"),
)
_TABLE = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
#: Any other headline is a report if a stack follows.
_UNKNOWN = re.compile(r"(BUG|WARNING): (?!.{0,15}(?:\[\d+\]|: page allocation failure))")
_BEGINS = re.compile(r"------------\[ cut here|={20,}$")
#: Every pattern contains one of these; a fast first test.
_CANDIDATE = re.compile(
    r"BUG|WARNING|INFO|Kernel panic|LOCKUP|UBSAN|\[#|[Oo]ut of memory|oom-k|kmemleak|PANIC"
    r"|Unable to handle"
)
_TASK = re.compile(r"CPU: \d+ (?:UID: \d+ )?PID: \d+ Comm: (.{1,15}?) +(?:Not tainted|Tainted: )")
_WORK = re.compile(r"Workqueue: \S+ ([\w.]+)")
_STACK = re.compile(r"\s*Call [Tt]race:")
#: The end of an oops, and the panic that follows it.
_OOPS_END = "---[ end trace"
_PANIC_AFTER_OOPS = re.compile(r"Kernel panic - not syncing: Fatal exception")

_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (Phase.INIT, re.compile(r"Run \S+ as init process")),
    (Phase.ROOT, re.compile(r"VFS: Mounted root")),
    (Phase.KERNEL, re.compile(r"Linux version \d")),
)


def classify(text: str) -> tuple[Finding, ...]:
    """The reports in a console text, in order.

    The panic after an oops, and repetitions between two marks, belong to the first report.
    """
    log = list(messages(text))
    found: dict[tuple[str, str], Finding] = {}
    last: Finding | None = None
    mark, complete = "", True
    for position, message in enumerate(log):
        if (words := message.mark) is not None:
            mark = words
        complete = complete or _OOPS_END in message.text
        kind = _kind(log, position)
        if kind is None or (last is not None and _continues(last, complete, kind, message, mark)):
            continue
        last = _finding(log[position : position + _MAX_LINES], kind, mark)
        found.setdefault((last.fingerprint, mark), last)
        complete = False
        if len(found) == MAX_FINDINGS:
            break
    return tuple(found.values())


def phase(text: str) -> Phase:
    """The last boot phase on a console."""
    return next((phase for phase, pattern in _PHASES if pattern.search(text)), Phase.SILENT)


def _kind(log: Sequence[Message], position: int) -> ReportKind | None:
    """The kind of the report that starts at a position, if any."""
    text = log[position].text
    if not _CANDIDATE.search(text):
        return None
    for kind, pattern in _TABLE:
        if pattern.match(text):
            return kind
    found = _UNKNOWN.match(text)
    if found and _has_stack(log[position + 1 : position + 1 + _STACK_WITHIN]):
        return ReportKind(found[1].lower().removesuffix("ing"))
    return None


def _has_stack(lines: Sequence[Message]) -> bool:
    """Whether a stack starts before another report or mark."""
    for message in lines:
        if _BEGINS.match(message.text) or message.mark is not None:
            return False
        if _STACK.match(message.text) or _TASK.match(message.text):
            return True
    return False


def _continues(
    last: Finding, complete: bool, kind: ReportKind, message: Message, mark: str
) -> bool:
    """Whether a headline continues the last report; `complete` says that its oops has ended."""
    if kind is ReportKind.PANIC:
        return last.kind is ReportKind.OOPS and bool(_PANIC_AFTER_OOPS.match(message.text))
    if kind is ReportKind.OUT_OF_MEMORY:
        return last.kind is kind and last.mark == mark and "invoked" not in message.text
    return kind is ReportKind.OOPS and last.kind is kind and not complete


def _finding(report: Sequence[Message], kind: ReportKind, mark: str) -> Finding:
    """The report that starts with the first message and ends before the next report or mark."""
    lines = [report[0].text.rstrip()]
    for position, message in enumerate(report[1:], start=1):
        if message.mark is not None or _starts_another(report, position, kind):
            break
        lines.append(message.text.rstrip())
    return Finding(
        kind,
        report[0].line,
        lines[0],
        () if kind in _WITHOUT_STACK else stack_traces.frames(lines),
        task=next((found[1] for line in lines if (found := _TASK.match(line))), ""),
        work=next((found[1] for line in lines if (found := _WORK.match(line))), ""),
        mark=mark,
    )


def _starts_another(report: Sequence[Message], position: int, kind: ReportKind) -> bool:
    found = _kind(report, position)
    return found is not None and {found, kind} != {ReportKind.OOPS}
