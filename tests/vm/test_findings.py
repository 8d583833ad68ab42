"""The classifier, against captured consoles and against lines that no kernel here will say."""

from __future__ import annotations

from pathlib import Path

import pytest

from vm.findings import Kind, Phase, classify, phase

LOGS = Path(__file__).parents[2] / "fixtures" / "console"


@pytest.mark.parametrize(
    ("log", "reached", "kinds"),
    [
        ("boot_clean", Phase.INIT, []),
        ("panic_no_root", Phase.KERNEL, [Kind.PANIC]),
        ("init_exits", Phase.INIT, [Kind.INIT_DIED]),
        ("panic_sysrq", Phase.SILENT, [Kind.PANIC]),
        ("warn_in_call", Phase.SILENT, [Kind.WARN]),
        ("oom_kill", Phase.SILENT, [Kind.OUT_OF_MEMORY, Kind.OUT_OF_MEMORY]),
    ],
)
def test_captured_log(log: str, reached: Phase, kinds: list[Kind]) -> None:
    text = (LOGS / f"{log}.log").read_text()
    assert phase(text) is reached
    assert [found.kind for found in classify(text)] == kinds


def test_every_captured_log_is_judged() -> None:
    judged = {"boot_clean", "panic_no_root", "init_exits", "panic_sysrq", "warn_in_call"}
    assert {log.stem for log in LOGS.glob("*.log")} == judged | {"oom_kill"}


# Formats from the kernel's sources: lib/bug.c, arch/x86/mm/fault.c, mm/kasan/report.c,
# kernel/locking/lockdep.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h.
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("WARNING: CPU: 1 PID: 77 at kernel/trace/ring_buffer.c:3675 rb_x+0x1/0x2", Kind.WARN),
        ("WARNING: kernel/trace/ring_buffer.c:3675 at rb_x+0x1/0x2, CPU#1: sh/77", Kind.WARN),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000010", Kind.OOPS),
        ("BUG: unable to handle page fault for address: ffffc90000000000", Kind.OOPS),
        ("Oops: Oops: 0000 [#1] SMP PTI", Kind.OOPS),
        ("Oops: general protection fault, probably for non-canonical address 0x6b", Kind.OOPS),
        ("kernel BUG at mm/slub.c:562!", Kind.OOPS),
        ("BUG: sleeping function called from invalid context at mm/x.c:1", Kind.BUG),
        ("BUG: KASAN: slab-use-after-free in user_event_mm_dup+0x1/0x2", Kind.KASAN),
        ("BUG: KFENCE: use-after-free read in f+0x1/0x2", Kind.KASAN),
        ("UBSAN: array-index-out-of-bounds in kernel/x.c:1:2", Kind.UBSAN),
        ("WARNING: possible circular locking dependency detected", Kind.LOCKDEP),
        ("WARNING: possible recursive locking detected", Kind.LOCKDEP),
        ("WARNING: possible irq lock inversion dependency detected", Kind.LOCKDEP),
        ("WARNING: inconsistent lock state", Kind.LOCKDEP),
        ("WARNING: suspicious RCU usage", Kind.LOCKDEP),
        ("WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected", Kind.LOCKDEP),
        ("WARNING: Nested lock was not taken", Kind.LOCKDEP),
        ("WARNING: bad contention detected!", Kind.LOCKDEP),
        ("WARNING: python3/77 still has locks held!", Kind.LOCKDEP),
        ("BUG: MAX_LOCKDEP_CHAINS too low!", Kind.LOCKDEP),
        ("BUG kmalloc-64 (Not tainted): Poison overwritten", Kind.BUG),
        ("BUG user_event (Tainted: G    B      O      ): Object already free", Kind.BUG),
        ("kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)", Kind.LEAK),
        ("INFO: task sh:77 blocked for more than 120 seconds.", Kind.HUNG_TASK),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:77]", Kind.SOFT_LOCKUP),
        ("watchdog: Watchdog detected hard LOCKUP on cpu 0", Kind.HARD_LOCKUP),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", Kind.RCU_STALL),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", Kind.RCU_STALL),
        ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {", Kind.RCU_STALL),
        ("Kernel panic - not syncing: Fatal exception", Kind.PANIC),
    ],
)
def test_line_of_the_kernel(line: str, kind: Kind) -> None:
    (found,) = classify(f"[    1.000000] calm\n[   12.345678][   T77] {line}\n")
    assert found.kind is kind
    assert found.line == 2
    assert found.text == line


@pytest.mark.parametrize(
    "line",
    [
        "uevt-mark 3 panic.named BUG: KASAN: in the name of a case",
        "rcu: Hierarchical RCU implementation.",
        "ACPI: BUGS are not here; WARNING signs neither",
        "user_events: WARNING of nothing",
        "kmemleak: Kernel memory leak detector initialized (mem pool available: 15711)",
        "---[ end Kernel panic - not syncing: Fatal exception ]---",
    ],
)
def test_harmless_line(line: str) -> None:
    assert classify(f"[    1.000000] {line}\n") == ()
