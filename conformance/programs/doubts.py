"""Where a difference between kernel and model says nothing about the kernel."""

from __future__ import annotations

from conformance import ops
from conformance.client.lockstep import Step
from conformance.client.tracefs import STATUS
from conformance.model.answers import Difference
from conformance.programs import calls, subjects
from conformance.programs.calls import Descriptors, NotJudged
from conformance.programs.followed import Followed
from vm.recorder.recording import Call

# Errors for which limits, namespaces, modes, security modules or the lack of memory may be the
# reason: none of them is recorded.
_ENVIRONMENT = frozenset(
    {
        *("EACCES", "EAGAIN", "EINTR", "ELOOP", "EMFILE", "ENFILE", "ENOMEM", "ENOSYS"),
        *("ENOTDIR", "EPERM", "EROFS", "EXDEV"),
    }
)
# Of openat2(2) itself.
_OPEN_HOW = frozenset({"EINVAL", "E2BIG", "EFAULT"})
# What depends on whether an event is enabled, in use, or there.
_OF_EVENTS = frozenset({"success", "EBADF", "EBUSY", "EADDRINUSE", "ENOENT"})
# Calls that may enable or remove events, and tracefs files by which they do not.
_CHANGING = frozenset(
    {
        *("write", "writev", "pwrite64", "pwritev", "pwritev2"),
        *("sendfile", "splice", "copy_file_range"),
    }
)
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_HARMLESS = frozenset({"trace", "trace_marker", "trace_marker_raw", "tracing_on"})
# What a program uses, and what is not known then.
_UNSEEN = {
    "io_uring_setup": ("io_uring: what it submits there is not seen", "what io_uring did"),
    "io_setup": (
        "asynchronous I/O: what it submits there is not seen",
        "what asynchronous I/O did",
    ),
    "perf_event_open": (
        "perf events of its own, which enable user events",
        "which events perf_event_open enabled",
    ),
}


def lose_sight(followed: Followed, name: str) -> None:
    """A program does something through a context, a ring or an event of its own."""
    uses, doubt = _UNSEEN[name]
    followed.remarks[f"the program uses {uses}"] += 1
    followed.lose_events(doubt)


def add_filter(followed: Followed, call: Call) -> None:
    """A program installs a filter of system calls, for itself and what it starts."""
    if call.result is not None and call.result >= 0:
        followed.filtered = True
        followed.remarks["the program has a seccomp filter, which may refuse calls"] += 1


def check_environment(
    followed: Followed, call: Call, operation: ops.Operation, seen: ops.Observation
) -> None:
    """Raise NotJudged if the model does not know why the kernel refused, or allowed, a call.

    The model then stays as it is; a file that was opened is taken over.
    """
    name = calls.name_of(call)
    causes = _ENVIRONMENT | (_OPEN_HOW if name == "openat2" else frozenset())
    opens = isinstance(operation, ops.Open) and seen.ok
    filtered = followed.filtered and not seen.ok
    if not opens and not filtered and seen.errno not in causes:
        return
    expected = {answer.errno for answer in followed.model.foresee(operation)}
    if not seen.ok and seen.errno not in expected:
        reasons = "such as a limit, a mode, a namespace or a filter"
        raise NotJudged(f"refused for a reason outside of user_events, {reasons}")
    if isinstance(operation, ops.Open) and seen.ok and expected == {"EACCES"}:
        followed.open_as_root(operation)
        raise NotJudged(f"{name} of {calls.files_of(call)}: modes of tracefs were not recorded")


def check_events(followed: Followed, call: Call, step: Step) -> None:
    """Raise NotJudged if what the model does not know may explain the differences of a step."""
    operation, doubt = step.operation, ""
    if _is_short(call) and step.seen.errno != "EFAULT":
        doubt = "the memory, which could not be read"
    elif subjects.is_write(operation) and _was_changed(call):
        doubt = "the memory, which was changed during the call"
    elif all(_depends_on_events(operation, each) for each in step.differences):
        doubt = followed.doubt
    if not doubt:
        return
    if isinstance(operation, ops.Ioctl):
        _lose(followed, operation.actor, operation.slot, doubt)
    name = f"{calls.name_of(call)}: " if step.seen.ok else ""
    raise NotJudged(f"{name}the model expects another result, but does not know {doubt}")


def not_taken_over(followed: Followed, call: Call, actor: str, known: Descriptors) -> None:
    """The model has not performed a call: what that may have changed is not known any more."""
    name, slot = calls.name_of(call), call.arguments[0] & 0xFFFFFFFF
    if calls.is_foreign(call, known):
        files = calls.files_of(call)
        changes = name in _CHANGING or (name in _OPENS and calls.truncates(call))
        if changes and files.rpartition("/")[2] not in _HARMLESS:
            followed.lose_events(f"what a {name} of {files} changed")
    elif name == "ioctl":
        _lose(followed, actor, slot, "what an ioctl changed that was not judged")
    elif known.paths.get(slot) == STATUS:
        # Its position.
        followed.forget(actor, slot)


def _lose(followed: Followed, actor: str, slot: int, doubt: str) -> None:
    """The write indexes of a descriptor, and references of events, are not known."""
    followed.forget(actor, slot)
    followed.lose_events(doubt)


def _is_short(call: Call) -> bool:
    """Whether memory was not readable when it was recorded."""
    return any(len(each.data) < each.wanted for each in call.before.memory)


def _was_changed(call: Call) -> bool:
    """Whether the data of a write were other ones when it returned."""
    return bool(call.after.memory) and call.after.memory != call.before.memory


def _depends_on_events(operation: ops.Operation, difference: Difference) -> bool:
    if difference.field == "errno":
        return {difference.allowed, difference.observed} <= _OF_EVENTS
    return difference.field != "value" or isinstance(operation, ops.Read)
