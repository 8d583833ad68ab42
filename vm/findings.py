"""What a kernel's console says when something is wrong, as a table, and what it says of booting.

Strings from the kernel's own sources; where they changed, both forms are matched.  Tested against
captured logs in fixtures/console/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What was found."""

    PANIC = "panic"
    INIT_DIED = "init_died"
    OOPS = "oops"
    KASAN = "kasan"
    UBSAN = "ubsan"
    LOCKDEP = "lockdep"
    RCU_STALL = "rcu_stall"
    SOFT_LOCKUP = "soft_lockup"
    HARD_LOCKUP = "hard_lockup"
    HUNG_TASK = "hung_task"
    OUT_OF_MEMORY = "out_of_memory"
    LEAK = "leak"
    BUG = "bug"
    WARN = "warn"


#: Kinds after which no answer can come: we boot with oops=panic.
FATAL = frozenset({Kind.PANIC, Kind.OOPS, Kind.HARD_LOCKUP})


class Phase(StrEnum):
    """How far a boot has come, in order."""

    SILENT = "silent"
    KERNEL = "kernel"
    ROOT = "root"
    INIT = "init"


@dataclass(frozen=True, slots=True)
class Finding:
    """One report: its kind, the line (from 1) where it begins, and that line without its stamp."""

    kind: Kind
    line: int
    text: str


#: Every mark that we write ourselves begins thus; such lines are never findings.
MARK_PREFIX = "uevt-mark "

# The first pattern that matches a line decides, so the special stand before the general.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    # kernel/exit.c:do_exit: our own process 1 ended; the kernel is only the messenger.
    (Kind.INIT_DIED, r"(?<!end )Kernel panic - not syncing: Attempted to kill init!"),
    (Kind.PANIC, r"(?<!end )Kernel panic - not syncing"),
    (Kind.KASAN, r"BUG: K(?:A|C|M)SAN: |BUG: KFENCE: "),
    (Kind.UBSAN, r"UBSAN: "),
    (Kind.SOFT_LOCKUP, r"BUG: soft lockup - CPU#\d+ stuck"),
    (Kind.HARD_LOCKUP, r"Watchdog detected hard LOCKUP"),
    (Kind.RCU_STALL, r"rcu.*: INFO: .*(?:detected (?:expedited )?stall|self-detected stall)"),
    (Kind.HUNG_TASK, r"INFO: task \S+ blocked for more than \d+ seconds"),
    (
        Kind.LOCKDEP,
        r"(?:WARNING|INFO|BUG): (?:possible (?:circular|recursive|irq) lock"
        r"|possible irq lock|inconsistent lock state|bad unlock balance"
        r"|suspicious RCU usage|lock held when returning|held lock freed|Invalid wait context"
        r"|\S+-safe -> \S+-unsafe lock order|Nested lock was not taken|bad contention detected"
        r"|chain_key collision|\S+ still has locks held"
        r"|MAX_LOCKDEP_|MAX_LOCK_DEPTH|key \S+ (?:not|has not))"
        r"|\[ BUG: Invalid wait context \]",
    ),
    (
        Kind.OOPS,
        r"Oops: |Oops\[|general protection fault|invalid opcode: \d+"
        r"|BUG: (?:unable to handle|kernel NULL pointer dereference)"
        r"|kernel BUG at |double fault: ",
    ),
    (Kind.OUT_OF_MEMORY, r"Out of memory: Killed process|invoked oom-killer"),
    (Kind.LEAK, r"kmemleak: \d+ new suspected memory leaks"),
    # mm/slub.c says which cache, where others have a colon: "BUG kmalloc-64 (Not tainted): …".
    (Kind.BUG, r"\bBUG: |\bBUG \S+ \((?:Not tainted|Tainted: [^)]*)\): "),
    # Before 6.18 "WARNING: CPU: 0 PID: 1 at file:line func"; since then the place comes first.
    (Kind.WARN, r"WARNING: (?:CPU: \d+|\S+:\d+ at |\S+ at \S+:\d+)"),
)
_TABLE = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
_ANY = re.compile("|".join(f"(?:{pattern})" for _, pattern in _PATTERNS))
# printk's records are shorter (PRINTK_MESSAGE_MAX); what a program writes to the console need not
# be, and some patterns take their time over long lines.
_LONGEST = 2048
_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])? ?")

_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (Phase.INIT, re.compile(r"Run \S+ as init process")),
    (Phase.ROOT, re.compile(r"VFS: Mounted root")),
    (Phase.KERNEL, re.compile(r"Linux version \d")),
)


def classify(text: str) -> tuple[Finding, ...]:
    """Every report in a console text, in order."""
    found = []
    for number, whole in enumerate(text.splitlines(), start=1):
        line = whole[:_LONGEST]
        if not _ANY.search(line) or MARK_PREFIX in line:
            continue
        kind = next(kind for kind, pattern in _TABLE if pattern.search(line))
        found.append(Finding(kind, number, _STAMP.sub("", line.rstrip())))
    return tuple(found)


def phase(text: str) -> Phase:
    """The last boot phase that the console shows."""
    return next((phase for phase, pattern in _PHASES if pattern.search(text)), Phase.SILENT)
