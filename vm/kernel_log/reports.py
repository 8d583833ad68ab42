"""What a kernel's console says when something is wrong, as a table, and what it says of booting.

Strings from the kernel's own sources; where they changed, both forms are matched.  A message has to
begin with one, and with more of it than the name of a process has room for (15 bytes): what a
process or an event is called is no report.  Tested against captured logs in fixtures/console/.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from host.kernel_reports import ReportKind
from vm.kernel_log import stack_traces
from vm.kernel_log.lines import Message, messages


class Phase(StrEnum):
    """How far a boot has come, in order."""

    SILENT = "silent"
    KERNEL = "kernel"
    ROOT = "root"
    INIT = "init"


@dataclass(frozen=True, slots=True)
class Finding:
    """One report: its kind, the line (from 1) where it begins, and that line without its stamp.

    `frames` are the functions of its stack; `task` and `work` say who ran: the name of a process
    and, of a worker, the function that it was given.  `mark` has the words of the last mark before
    it, "" if there is none in the text.
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
        """What groups reports of one cause: `vm.kernel_log.stack_traces.fingerprint`."""
        if self.kind is ReportKind.OUT_OF_MEMORY:
            # Who was asking, and who was killed, is chance.
            return self.kind.value
        return stack_traces.fingerprint(self.kind, self.frames, self.text)


#: Kinds that say in words what happened; what is on the stack is how the kernel came to say so.
_SAID = frozenset({ReportKind.PANIC, ReportKind.INIT_DIED, ReportKind.OUT_OF_MEMORY})
#: Reports of one text that are told apart.
MOST = 64
#: Lines that one report has at most.
_LENGTH = 250
#: Within so many lines of a headline that no table knows its stack begins.
_NEAR = 8

# The first pattern that matches decides, so the special stand before the general.
_PATTERNS: tuple[tuple[ReportKind, str], ...] = (
    # mm/oom_kill.c begins with a name that may be anything.
    (
        ReportKind.OUT_OF_MEMORY,
        r".{1,15} invoked oom-killer: gfp_mask="
        r"|(?:Memory cgroup o|O)ut of memory: Killed process \d",
    ),
    # kernel/exit.c:do_exit: our own process 1 ended; the kernel is only the messenger.
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
        # arch/x86/kernel/dumpstack.c:__die_header says how many there were.
        r"|(?:Oops|Internal error|general protection fault|invalid opcode|divide error"
        r"|double fault|stack segment|int3|alignment check|control protection|UBSAN)\b.*"
        r": [0-9a-f]{4,16} \[#\d+\](?: [A-Z]|\s*$)"
        r"|(?:traps: )?PANIC: double fault, error_code:",
    ),
    (ReportKind.LEAK, r"kmemleak: \d+ new suspected memory leaks"),
    # mm/slub.c says which cache, where others have a colon: "BUG kmalloc-64 (Not tainted): …".
    (
        ReportKind.BUG,
        r"BUG \S+ \((?:Not tainted|Tainted: [^)]*)\): "
        r"|BUG: (?:sleeping function called from|scheduling while atomic: |workqueue lockup - "
        r"|Bad (?:page (?:state|map)|rss-counter state) |spinlock |rwlock |using \w+\(\) in pre"
        r"|non-zero pgtables_bytes|(?:TASK |stack )?stack guard page was hit|Dentry )",
    ),
    # Before 6.18 "WARNING: CPU: 0 PID: 1 at file:line func"; since then the place comes first.
    (ReportKind.WARN, r"WARNING: (?:CPU: \d+ PID: \d+ at |\S+:\d+ at |\S+ at \S+:\d+)"),
)
_TABLE = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
#: One of these with a stack below is a report, whatever it says.
_UNHEARD_OF = re.compile(r"(BUG|WARNING): (?!.{0,15}(?:\[\d+\]|: page allocation failure))")
_BEGINS = re.compile(r"------------\[ cut here|={20,}$")
#: What a message needs to have to be looked at.
_ONE_OF = re.compile(
    r"BUG|WARNING|INFO|Kernel panic|LOCKUP|UBSAN|\[#|[Oo]ut of memory|oom-k|kmemleak|PANIC"
)
_TASK = re.compile(r"CPU: \d+ (?:UID: \d+ )?PID: \d+ Comm: (.{1,15}?) +(?:Not tainted|Tainted: )")
_WORK = re.compile(r"Workqueue: \S+ ([\w.]+)")
_STACK = re.compile(r"\s*Call Trace:")
#: The end of an oops; what is said after it of the same oops.
_OOPS_ENDS = "---[ end trace"
_OF_AN_OOPS = re.compile(r"Kernel panic - not syncing: Fatal exception")

_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (Phase.INIT, re.compile(r"Run \S+ as init process")),
    (Phase.ROOT, re.compile(r"VFS: Mounted root")),
    (Phase.KERNEL, re.compile(r"Linux version \d")),
)


def classify(text: str) -> tuple[Finding, ...]:
    """Every report in a console text, in order.

    What one cause makes the kernel say is one: the panic after an oops, and what it repeats
    between two marks.
    """
    said = list(messages(text))
    found: dict[tuple[str, str], Finding] = {}
    last: Finding | None = None
    mark, complete = "", True
    for position, message in enumerate(said):
        if (words := message.mark) is not None:
            mark = words
        complete = complete or _OOPS_ENDS in message.text
        kind = _kind(said, position)
        if kind is None or (last is not None and _continues(last, complete, kind, message, mark)):
            continue
        last = _finding(said[position : position + _LENGTH], kind, mark)
        found.setdefault((last.fingerprint, mark), last)
        complete = False
        if len(found) == MOST:
            break
    return tuple(found.values())


def phase(text: str) -> Phase:
    """The last boot phase that the console shows."""
    return next((phase for phase, pattern in _PHASES if pattern.search(text)), Phase.SILENT)


def _kind(said: Sequence[Message], position: int) -> ReportKind | None:
    """The kind of a report that begins here, None if none does."""
    text = said[position].text
    if not _ONE_OF.search(text):
        return None
    for kind, pattern in _TABLE:
        if pattern.match(text):
            return kind
    found = _UNHEARD_OF.match(text)
    if found and _has_stack(said[position + 1 : position + 1 + _NEAR]):
        return ReportKind(found[1].lower().removesuffix("ing"))
    return None


def _has_stack(lines: Sequence[Message]) -> bool:
    """Whether a stack comes before anything else begins."""
    for message in lines:
        if _BEGINS.match(message.text) or message.mark is not None:
            return False
        if _STACK.match(message.text) or _TASK.match(message.text):
            return True
    return False


def _continues(
    last: Finding, complete: bool, kind: ReportKind, message: Message, mark: str
) -> bool:
    """Whether a headline goes on with the last report, which is `complete` once it says so."""
    if kind is ReportKind.PANIC:
        return last.kind is ReportKind.OOPS and bool(_OF_AN_OOPS.match(message.text))
    if kind is ReportKind.OUT_OF_MEMORY:
        return last.kind is kind and last.mark == mark and "invoked" not in message.text
    return kind is ReportKind.OOPS and last.kind is kind and not complete


def _finding(report: Sequence[Message], kind: ReportKind, mark: str) -> Finding:
    """The report that begins with the first message, and ends where another begins."""
    lines = [report[0].text.rstrip()]
    for position, message in enumerate(report[1:], start=1):
        if message.mark is not None or _is_another(report, position, kind):
            break
        lines.append(message.text.rstrip())
    return Finding(
        kind,
        report[0].line,
        lines[0],
        () if kind in _SAID else stack_traces.frames(lines),
        task=next((found[1] for line in lines if (found := _TASK.match(line))), ""),
        work=next((found[1] for line in lines if (found := _WORK.match(line))), ""),
        mark=mark,
    )


def _is_another(report: Sequence[Message], position: int, kind: ReportKind) -> bool:
    found = _kind(report, position)
    return found is not None and {found, kind} != {ReportKind.OOPS}
