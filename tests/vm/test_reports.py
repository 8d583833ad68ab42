"""Classify captured consoles, and headlines from the kernel sources."""

from __future__ import annotations

import time

import pytest

from host.kernel_reports import ReportKind
from tests.vm.captured import LOGS, read
from vm.kernel_log import stack_traces
from vm.kernel_log.reports import MAX_FINDINGS, Finding, Phase, classify, phase

FREE = "kasan:hazard_freed/hazard_write/proc_reg_write"

# Fingerprints of the reports in each captured log.
CAPTURED: dict[str, list[str]] = {
    "boot_clean": [],
    "panic_no_root": ["panic:vfs-unable-to-mount-root-fs-on-or"],
    "init_exits": ["init_died:attempted-to-kill-init-exitcode"],
    "panic_sysrq": ["panic:sysrq-triggered-crash"],
    "panic_in_call": ["panic:uevt-hazard-was-asked-to"],
    "oom_kill": ["out_of_memory"],
    "warn_in_call": ["warn:perf_trace_buf_alloc/user_event_perf/user_events_write_core"],
    "warn_6.12": ["warn:hazard_warn/hazard_write/proc_reg_write"],
    "warn_6.1": ["warn:hazard_warn/hazard_write/proc_reg_write"],
    "warn_7.3": ["warn:hazard_warn/hazard_write/proc_reg_write"],
    "two_reports": [
        "warn:hazard_warn_on/hazard_warn_twice/hazard_write",
        "warn:hazard_warn/hazard_write/proc_reg_write",
    ],
    "late_report": ["warn:later_warn"],
    "torn_line": ["warn:hazard_warn/hazard_write/proc_reg_write"],
    "oops_null": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "oops_null_6.1": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "oops_null_7.3": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "oops_null_debug": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "oops_survived": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "oops_storm": ["oops:oops-general-protection-fault-probably-for-non-canonical"],
    "oops_wild_address": ["oops:hazard_wild/hazard_write/proc_reg_write"],
    "oops_divide": ["oops:hazard_divide/hazard_write/proc_reg_write"],
    "bug_in_call": ["oops:hazard_bug/hazard_write/proc_reg_write"],
    "hung_task": ["hung_task:hazard_write/proc_reg_write/vfs_write"],
    "soft_lockup": ["soft_lockup:hazard_spin/hazard_write/proc_reg_write"],
    "rcu_stall": ["rcu_stall:hazard_spin_in_rcu/hazard_write/proc_reg_write"],
    "sleep_in_atomic": [
        "bug:hazard_atomic/hazard_write/proc_reg_write",
        "lockdep:rcu_sync_is_idle/percpu_up_read/vfs_write",
        "bug:syscall_exit_to_user_mode",
    ],
    "lock_order": ["lockdep:hazard_locks/hazard_write/proc_reg_write"],
    "lock_held": ["lockdep:warning-lock-held-when-returning-to-user-space"],
    "rcu_usage": ["lockdep:hazard_rcu/hazard_write/proc_reg_write"],
    "kasan_use_after_free": [FREE],
    "kasan_out_of_bounds": ["kasan:hazard_beyond/hazard_write/proc_reg_write"],
    "list_corruption": ["warn:hazard_list/hazard_write/proc_reg_write"],
    "leak": ["leak:kmemleak-new-suspected-memory-leaks"],
    # Names of processes and modules are no reports, and hide none.
    "process_named_kasan": ["warn:hazard_warn/hazard_write/proc_reg_write", "out_of_memory"],
    "process_named_oops": ["oops:hazard_null/hazard_write/proc_reg_write"],
    "process_named_mark": ["warn:hazard_warn/hazard_write/proc_reg_write", "out_of_memory"],
    # The panic that a diagnosis provokes: see vm.postmortem.hang.
    "hang_nmi": ["panic:nmi-not-continuing"],
    "hang_nmi_in_interrupt": ["panic:nmi-not-continuing"],
    "hang_nmi_idle": ["panic:nmi-not-continuing"],
    "hang_tasks": [],
    "hang_tasks_waiting": [],
    "hang_tasks_stale": [],
    "module_says_oops": [],
    "rate_limited": [],
    "silent_hang": [],
}


def prints(text: str) -> list[str]:
    return [found.fingerprint for found in classify(text)]


@pytest.mark.parametrize("log", sorted(path.stem for path in LOGS.glob("*.log")))
def test_captured_log(log: str) -> None:
    text = read(log)
    assert prints(text) == CAPTURED[log]
    for found in classify(text):
        assert found.text in text.split("\n")[found.line - 1]


@pytest.mark.parametrize("log", sorted(CAPTURED))
def test_captured_log_with_other_formats(log: str) -> None:
    """console_msg_format=syslog, PRINTK_CALLER, terminal escapes and CR LF."""
    text = read(log)
    assert prints(text.replace("\n", "\r\n")) == CAPTURED[log]
    lines = [line.replace("] ", "][    T1] ", 1) for line in text.split("\n")]
    assert prints("\n".join(f"<4>{line}" for line in lines)) == CAPTURED[log]
    assert prints("\x1bc\x1b[?7l\x1b[2J\x00\ufffd" + text) == CAPTURED[log]


@pytest.mark.parametrize("log", sorted(CAPTURED))
def test_captured_log_without_timestamps(log: str) -> None:
    """printk.time=0: every line is a message."""
    text = "\n".join(line.partition("] ")[2] or line for line in read(log).split("\n"))
    assert len(prints(text)) == len(CAPTURED[log])


def test_boot_phases() -> None:
    reached = {log: phase(read(log)) for log in ("boot_clean", "init_exits", "panic_no_root")}
    assert reached == {
        "boot_clean": Phase.INIT,
        "init_exits": Phase.INIT,
        "panic_no_root": Phase.KERNEL,
    }
    assert phase(read("silent_hang")) is Phase.SILENT


def test_report_has_the_preceding_mark() -> None:
    (late,) = classify(read("late_report"))
    assert (late.mark, late.task, late.work) == ("drill.other", "kworker/0:1", "later_warn")
    marks = [(found.kind, found.mark) for found in classify(read("oops_null") + read("warn_6.1"))]
    assert marks == [(ReportKind.OOPS, "drill.before"), (ReportKind.WARN, "drill.before")]


def test_process_names_forge_no_report() -> None:
    warned, _ = classify(read("process_named_kasan"))
    assert (warned.kind, warned.task) == (ReportKind.WARN, "BUG: KASAN: x a")
    (oops,) = classify(read("process_named_oops"))
    assert (oops.kind, oops.task) == (ReportKind.OOPS, "Oops: 0000 [#1]")
    warned, killed = classify(read("process_named_mark"))
    assert {warned.mark, killed.mark} == {"drill.before"}


def test_panic_interrupts_another_record() -> None:
    text = read("warn_6.1")
    torn = text[: text.index("Modules linked in") + 9] + read("panic_in_call").partition("\n")[2]
    assert [found.kind for found in classify(torn)] == [ReportKind.WARN, ReportKind.PANIC]


def test_two_oopses_are_two_reports() -> None:
    twice = classify(read("oops_survived") + read("bug_in_call"))
    assert [found.frames[0] for found in twice] == ["hazard_null", "hazard_bug"]


def test_compiler_suffixes_are_removed() -> None:
    text = read("warn_in_call")
    made = text.replace("perf_trace_buf_alloc", "perf_trace_buf_alloc.constprop.0.cold")
    assert "user_events_write_core.isra.0" in text
    assert prints(made) == CAPTURED["warn_in_call"]


@pytest.mark.parametrize("waits", ["mutex_spin_on_owner", "native_queued_spin_lock_slowpath"])
def test_waiting_for_a_lock_is_its_callers_hang(waits: str) -> None:
    """A process that spins for a lock hangs in the same place as one that sleeps for it."""
    lines = [line.partition("] ")[2] for line in read("hang_nmi").splitlines()]
    spins = [line.replace("hazard_spin_irqs_off", waits) for line in lines]
    assert stack_traces.frames(lines)[0] == "hazard_spin_irqs_off"
    assert stack_traces.frames(spins)[:2] == ("hazard_write", "proc_reg_write")


def test_flood_is_classified_quickly() -> None:
    one = read("oops_survived").partition("\n")[2].partition("---[ end")[0]
    began = time.monotonic()
    assert len(classify(one * 2000)) == 1
    report = read("warn_6.1").replace("uevt-mark", "no mark")
    marked = [f"[    1.000000] uevt-mark {n} drill.n{n}\n{report}" for n in range(200)]
    assert len(classify("".join(marked))) == MAX_FINDINGS
    assert time.monotonic() - began < 10


# Formats from the kernel's sources: lib/bug.c, arch/x86/mm/fault.c, mm/kasan/report.c,
# kernel/locking/lockdep.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h.
HEADLINES = {
    ReportKind.WARN: (
        "WARNING: CPU: 1 PID: 77 at kernel/trace/ring_buffer.c:3675 rb_x+0x1/0x2",
        "WARNING: kernel/trace/ring_buffer.c:3675 at rb_x+0x1/0x2, CPU#1: sh/77",
    ),
    ReportKind.OOPS: (
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "BUG: unable to handle page fault for address: ffffc90000000000",
        "Oops: Oops: 0000 [#1] SMP PTI",
        "Oops: 0002 [#1] PREEMPT SMP",
        "Oops: general protection fault, probably for address 0x6b: 0000 [#1] SMP",
        "general protection fault, maybe for address 0x6b: 0000 [#2]",
        "invalid opcode: 0000 [#1] PREEMPT SMP NOPTI",
        "kernel BUG at mm/slub.c:562!",
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
        "Unable to handle kernel access to user memory without uaccess routines at virtual address "
        "0000000000000010",
        "CPU 0 Unable to handle kernel paging request at virtual address 0000000000000010, "
        "era == 9000000000203f2c, ra == 9000000000203f2c",
        "Internal error: Oops: 0000000096000004 [#1] SMP",
        "Oops [#1]",
        "Oops - illegal instruction [#2]",
        "Kernel BUG [#1]",
        "Oops[#1]:",
        "Kernel ade access[#3]:",
        "Oops - BUG[#1]:",
    ),
    ReportKind.BUG: (
        "BUG: sleeping function called from invalid context at mm/x.c:1",
        "BUG: using smp_processor_id() in preemptible [00000000] code: sh/77",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "BUG user_event (Tainted: G    B      O      ): Object already free",
        "BUG: Bad current_user_events",
    ),
    ReportKind.KASAN: (
        "BUG: KASAN: slab-use-after-free in user_event_mm_dup+0x1/0x2",
        "BUG: KFENCE: use-after-free read in f+0x1/0x2",
    ),
    ReportKind.UBSAN: ("UBSAN: array-index-out-of-bounds in kernel/x.c:1:2",),
    ReportKind.LOCKDEP: (
        "WARNING: possible circular locking dependency detected",
        "WARNING: possible recursive locking detected",
        "WARNING: possible irq lock inversion dependency detected",
        "WARNING: inconsistent lock state",
        "WARNING: suspicious RCU usage",
        "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
        "WARNING: Nested lock was not taken",
        "WARNING: bad contention detected!",
        "WARNING: python3/77 still has locks held!",
        "WARNING: a name/77 still has locks held!",
        "INFO: trying to register non-static key.",
        "BUG: MAX_LOCKDEP_CHAINS too low!",
    ),
    ReportKind.LEAK: ("kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",),
    ReportKind.HUNG_TASK: (
        "INFO: task sh:77 blocked for more than 120 seconds.",
        "INFO: task uevt-mark 1:77 blocked for more than 120 seconds.",
        "INFO: task sh:77 blocked in I/O wait for more than 120 seconds.",
    ),
    ReportKind.SOFT_LOCKUP: (
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:77]",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [uevt-mark 1 x:77]",
    ),
    ReportKind.HARD_LOCKUP: ("watchdog: Watchdog detected hard LOCKUP on cpu 0",),
    ReportKind.RCU_STALL: (
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {",
    ),
    ReportKind.OUT_OF_MEMORY: (
        "uevt-mark 7 x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL)",
        "Out of memory: Killed process 77 (uevt-mark 1 x) total-vm:1kB",
    ),
    ReportKind.PANIC: ("Kernel panic - not syncing: Fatal exception",),
}


@pytest.mark.parametrize(
    ("kind", "line"), [(kind, line) for kind, lines in HEADLINES.items() for line in lines]
)
def test_headline(kind: ReportKind, line: str) -> None:
    (found,) = classify(f"[    1.000000] calm\n[   12.345678][   T77] {line}\n")
    assert found.kind is kind
    assert found.line == 2
    assert found.text == line


def test_stack_of_another_machine() -> None:
    """arch/riscv: the stack follows the second headline."""
    lines = (
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
        "Oops [#1]",
        "CPU: 0 PID: 77 Comm: sh Not tainted 6.12.0 #1",
        "Call Trace:",
        "[<ffffffff80123456>] user_event_mm_dup+0x1a/0x30",
        "[<ffffffff80012345>] copy_process+0x8/0x100",
        "---[ end trace 0000000000000000 ]---",
        "Kernel panic - not syncing: Fatal exception",
    )
    (found,) = classify("".join(f"[    1.000000] {line}\n" for line in lines))
    assert (found.kind, found.frames) == (ReportKind.OOPS, ("user_event_mm_dup", "copy_process"))
    arm64 = [line.replace("Call Trace", "Call trace") for line in lines]
    assert stack_traces.frames(arm64) == found.frames


@pytest.mark.parametrize("head", ["BUG: this was never heard of", "WARNING: of a new kind"])
def test_unknown_headline_needs_a_stack(head: str) -> None:
    stack = "[    1.000000] Call Trace:\n[    1.000000]  f+0x1/0x2\n"
    (found,) = classify(f"[    1.000000] {head}\n{stack}")
    assert found == Finding(ReportKind.BUG if "BUG" in head else ReportKind.WARN, 1, head, ("f",))
    assert classify(f"[    1.000000] {head}\n[    1.000000] calm\n") == ()
    # The stack of another report.
    cut = f"[    1.000000] ------------[ cut here ]------------\n{stack}"
    assert classify(f"[    1.000000] {head}\n{cut}") == ()


@pytest.mark.parametrize(
    "line",
    [
        "uevt-mark 3 panic.named BUG: KASAN: in the name of a case",
        "rcu: Hierarchical RCU implementation.",
        "ACPI: BUGS are not here; WARNING signs neither",
        "user_events: WARNING of nothing",
        "kmemleak: Kernel memory leak detector initialized (mem pool available: 15711)",
        "---[ end Kernel panic - not syncing: Fatal exception ]---",
        # The command line.
        "Command line: panic=-1 oops=panic x=BUG: KASAN: bad in f+0x1/0x2",
        "Kernel command line: x=[    1.000000] Kernel panic - not syncing: no",
        'Unknown kernel command line parameters "Kernel panic - not syncing", will be passed',
        "    x=BUG: kernel NULL pointer dereference",
        # Names of processes at the start of a line, and of events with tp_printk.
        "BUG: KASAN: x a[77]: segfault at 0 ip 000000000040 sp 00007ffd error 6 in x[401000+1000]",
        "Oops: 0000 [#1][77]: segfault at 0 ip 000000000040 sp 00007ffd error 6",
        "Oops: 0000 [#1]: page allocation failure: order:0, mode:0x40cc0(GFP_KERNEL)",
        "BUG: KASAN: x a: page allocation failure: order:0, mode:0x40cc0(GFP_KERNEL)",
        "BUG: u=1",
        "BUG:KASAN:x: u=1 s=BUG: KASAN: bad in f+0x1/0x2",
        " Kernel panic-36      0..... 1us : x: s=Oops: 0000 [#1] SMP",
        # Messages of user modules.
        "Oops: I did it again",
        "Oops [#1][77]: segfault at 0 ip 000000000040 sp 00007ffd error 6",
        "Kernel BUG [#1] of my own",
        "Oops[#1]:[77]: segfault at 0 ip 000000000040 sp 00007ffd error 6",
        "Unable to handle kernel requests",
        "my_module: BUG: KASAN: bad in f+0x1/0x2",
        "hello\x0b[    1.0] Kernel panic - not syncing: x\x85BUG: KASAN: bad in f+0x1/0x2",
    ],
)
def test_harmless_line(line: str) -> None:
    assert classify(f"[    1.000000] {line}\n") == ()


def test_process_names_forge_no_mark() -> None:
    name = "uevt-mark 7 x"
    text = (
        "[    1.000000] uevt-mark 6 drill.first\n"
        f"[    1.000000] {name}[77]: segfault at 0 ip 0000 sp 0000 error 6\n"
        f"[    1.000000] Comm: {name} Not tainted\n"
        "[    1.000000] Kernel panic - not syncing: x\n"
    )
    (found,) = classify(text)
    assert found.mark == "drill.first"
