"""The kinds of reports that a kernel writes to its console."""

from __future__ import annotations

from enum import StrEnum


class ReportKind(StrEnum):
    """Kind of a kernel report; the values are stored in result files and expectation rules."""

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
    #: Not printed by the kernel: the stack that an unresponsive guest was found in.
    HANG = "hang"


#: Kinds after which the kernel cannot be trusted.  With oops=panic it has also ended.
CRASHES = frozenset({ReportKind.PANIC, ReportKind.OOPS, ReportKind.HARD_LOCKUP})
#: Kinds without a cause in the kernel: the guest's process 1 ends when the host hangs up.
HARMLESS = frozenset({ReportKind.INIT_DIED})
