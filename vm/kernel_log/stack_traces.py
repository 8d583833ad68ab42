"""Extract the stack of a kernel report, and group reports by cause.

A frame is `[? ]function+0xoffset/0xsize [module]`.  A question mark denotes an unreliable address
found on the stack; with UNWINDER_GUESS there are no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import dropwhile, takewhile

#: Number of frames, and of headline words, in a fingerprint.
TOP = 3
_WORDS = 8
_SYMBOL = r"([A-Za-z_][\w.$]*)\+0x[0-9a-f]+/0x[0-9a-f]+"
#: Skips unreliable addresses at the end of a function: no call returns there.
_FRAME = re.compile(rf"\s*(?:\[<[0-9a-f]+>\] )?(?:(\? )(?!\S+\+(0x[0-9a-f]+)/\2\b))?{_SYMBOL}")
#: The instruction pointer in kernel mode; in user mode the segment is 0033.
_AT = re.compile(rf"RIP: 0010:{_SYMBOL}")
_IN = re.compile(rf" (?:in|at) {_SYMBOL}")
# arm64 prints "Call trace:".
_TRACE = re.compile(r"\s*Call [Tt]race:")
#: Suffixes of functions cloned by the compiler.
_CLONE_SUFFIX = re.compile(r"\.(?:isra|part|constprop|cold|llvm|lto_priv|clone)\b.*|\.\d+$")

#: Functions that report, sleep or lock: their caller is significant.
_REPORTING = re.compile(
    r"_*(?:dump_stack(?:_lvl)?|show_stack|v?panic|nmi_panic|warn(?:_printk)?|warn_slowpath_\w+"
    r"|report_bug|handle_bug|exc_\w+|asm_exc_\w+|(?:asm_)?sysvec_\w+|die\w*|oops_\w+|page_fault_oops"
    r"|no_context|\w*bad_area\w*|do_(?:user|kern)_addr_fault|kernelmode_fixup_or_oops"
    r"|do_error_trap|do_trap\w*|print_\w+|kasan_\w+|asan_\w+|ubsan_\w+|kfence_\w+"
    r"|lock_(?:acquire|acquired|release)|validate_chain|mark_lock\w*|check_(?:noncircular|usage\w*"
    r"|prevs?_add\w*|irq_usage|deadlock\w*|wait_context)|lockdep_\w+|debug_check_no_\w+"
    r"|might_(?:sleep|resched|fault)|schedule\w*|\w*mutex_lock\w*|raw_spin_\w+|raw_(?:read|write)_\w+"
    r"|mutex_spin_on_owner|mutex_optimistic_spin|osq_lock|(?:native_)?queued_\w+_lock_slowpath"
    r"|down(?:_\w+)?|rwsem_\w+|wait_for_co\w+|io_schedule\w*|msleep\w*|usleep_\w+"
    r"|refcount_warn_saturate|list_(?:add|del)_\w+|debug_print_object|debug_object_\w+"
    r"|slab_(?:err|bug|fix)|object_err|watchdog_timer_fn|hrtimer_\w+|rcu_\w*stall\w*"
    r"|rcu_(?:sched_clock_irq|check_gp_\w+|dump_\w+)|update_process_times|tick_\w+|nmi_\w+"
    r"|(?:un)?known_nmi_error|default_do_nmi|end_repeat_nmi|sched_show_task|cpu_relax)"
)
#: Kernel entry points, which end the significant part of a stack.
_ENTRY = re.compile(
    r"do_syscall_\w+|entry_\w+|_*do_fast_syscall_32|do_int80\w*|x64_sys_call|ret_from_fork\w*"
    r"|kthread|worker_thread|process_(?:scheduled_works|one_work)|start_kernel|kernel_init"
    r"|secondary_startup\w*|<.*>"
)


def frames(lines: Sequence[str]) -> tuple[str, ...]:
    """The significant functions of a report, innermost first, without compiler suffixes.

    `lines` is the report without stamps, starting with its headline.
    """
    if (end := _last("</NMI>", lines)) is not None:
        return _interrupted(lines, end)
    stopped = next((n for n, line in enumerate(lines) if n and _AT.search(line)), 0)
    at = _first(_AT, lines[stopped:]) or _first(_IN, lines[:1])
    after = list(dropwhile(lambda line: not _TRACE.match(line), lines[stopped:]))[1:]
    calls = _calls(takewhile(lambda line: not _is_end(line), after))
    if at is None or _REPORTING.fullmatch(at):
        return tuple(calls)
    rest = calls[calls.index(at) + 1 :] if at in calls else calls
    return (at, *rest)


def fingerprint(kind: str, functions: Sequence[str], headline: str) -> str:
    """An id that is the same for reports of one cause in different releases and builds.

    Without a stack it is made of the headline without numbers.
    """
    top = "/".join(functions[:TOP])
    return f"{kind}:{top or _without_numbers(headline)}"


def _interrupted(lines: Sequence[str], end: int) -> tuple[str, ...]:
    """The functions interrupted by an NMI whose own stack ends at a line.

    The last frame of that stack is the interrupted function, unless it was an interrupt handler.
    """
    if (interrupt := _last("</IRQ>", lines)) is not None:
        return tuple(_calls(lines[interrupt:]))
    found = _FRAME.match(lines[end - 1])
    calls = _calls(lines[end:])
    return tuple(_significant([_name(found[3]), *calls] if found else calls))


def _calls(lines: Iterable[str]) -> list[str]:
    """The significant functions of a stack, from the reliable frames if there are any."""
    found = [each for line in lines if (each := _FRAME.match(line))]
    reliable = [each for each in found if not each[1]]
    return _significant([_name(each[3]) for each in (reliable or found)])


def _last(words: str, lines: Sequence[str]) -> int | None:
    return next((n for n in range(len(lines) - 1, -1, -1) if words in lines[n]), None)


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> str | None:
    found = next((each for line in lines if (each := pattern.search(line))), None)
    return None if found is None else _name(found[1])


def _is_end(line: str) -> bool:
    """Whether a line ends a stack."""
    return bool(_TRACE.match(line)) or line.startswith(
        ("---[", "------------[", "Modules linked in", "Allocated by", "Freed by", "Code: ")
    )


def _significant(names: Iterable[str]) -> list[str]:
    """Drop reporting functions at the top and everything from the kernel entry on."""
    inside = takewhile(lambda name: not _ENTRY.fullmatch(name), names)
    kept: list[str] = []
    for name in dropwhile(_REPORTING.fullmatch, inside):
        # Merge recursion and repeated addresses.
        if not kept or kept[-1] != name:
            kept.append(name)
    return kept


def _name(symbol: str) -> str:
    return _CLONE_SUFFIX.sub("", symbol)


def _without_numbers(headline: str) -> str:
    text = re.sub(r"^kernel panic - not syncing: |^.{1,15} invoked", "", headline, flags=re.I)
    words = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+|=\S*|\(.*?\)", " ", text.lower())
    return "-".join(re.findall(r"[a-z]+", words)[:_WORDS])
