"""Tasks: clone, execve, exit; what they share and inherit.

Source: include/linux/user_events.h:user_events_fork, user_events_execve, user_events_exit;
trace_events_user.c:user_event_mm_dup, user_event_mm_remove; kernel/fork.c:copy_process;
fs/exec.c:bprm_execve, begin_new_exec.
"""

from __future__ import annotations

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.model.state.process import Enabler, Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import files
from conformance.ops import tasks

# Paths that execve(2) refuses.
_REFUSED = {
    "/proc/self/fd/900": "ENOEXEC",
    "/nonexistent": "ENOENT",
    "/proc": "EACCES",
    files.STATUS: "EACCES",
}


def spawn(world: World, process: Process, operation: ops.Spawn) -> Answer:
    """A new process of root, see ``performer``."""
    return Answer(0)


def fork(world: World, parent: Process, operation: ops.Fork) -> Answer:
    """fork(2): memory, descriptors and enablers are copied."""
    if parent.pid_namespace_for_children is not parent.pid_namespace:
        raise NotModelled("fork(2) into another PID namespace")
    child = parent.task_with(operation.child, parent.memory.fork(), dict(parent.slots))
    child.enablers = _copied_enablers(world, parent)
    for event in world.perf_events:
        if event.inherit and parent in event.tasks:
            event.tasks.append(child)
    world.processes[operation.child] = child
    return Answer(None)


def clone(world: World, parent: Process, operation: tasks.Clone) -> Answer:
    """clone(2): shared resources are the same object, others are copied."""
    flags = operation.flags
    if flags & tasks.CLONE_VFORK and parent.driver is None:
        raise NotModelled("vfork(2) of a process that drives tasks")
    copied, parent.copied_memory = parent.copied_memory, None
    memory = parent.memory if flags & tasks.CLONE_VM else copied or parent.memory.fork()
    slots = parent.slots if flags & tasks.CLONE_FILES else dict(parent.slots)
    child = parent.task_with(operation.child, memory, slots)
    if flags & tasks.CLONE_FILES:
        child.closed_slots, child.kept_over_exec = parent.closed_slots, parent.kept_over_exec
    child.driver = parent.driver or parent
    parent.waits_for = child if flags & tasks.CLONE_VFORK else None
    if flags & tasks.CLONE_THREAD:
        child.leader = parent.leader or parent
    if parent.pid_namespace_for_children is not parent.pid_namespace:
        if flags & (tasks.CLONE_THREAD | tasks.CLONE_VFORK):
            raise NotModelled("a thread or vfork child after unshare(CLONE_NEWPID)")
        child.pid_namespace = child.pid_namespace_for_children = parent.pid_namespace_for_children
        assert child.pid_namespace is not None
        child.pid_namespace.members.append(child)
    elif parent.pid_namespace is not None:
        raise NotModelled("a child inside of a PID namespace")
    if any(event.inherit and parent in event.tasks for event in world.perf_events):
        raise NotModelled("a child of a process that perf follows")
    # user_events_fork(): without user_event_mm there is nothing to share.
    shares = flags & tasks.CLONE_VM
    child.enablers = parent.enablers if shares else _copied_enablers(world, parent)
    world.processes[operation.child] = child
    return Answer(None)


def _copied_enablers(world: World, parent: Process) -> list[Enabler] | None:
    """user_event_mm_dup(): bit and address are copied, each with a reference."""
    if parent.enablers is None:
        return None
    return [world.duplicate(each) for each in parent.enablers if not each.freeing]


def execute(world: World, process: Process, operation: tasks.Exec) -> Answer:
    """execve(2): other threads, memory, enablers and close-on-exec descriptors go."""
    if operation.path:
        if operation.path not in _REFUSED:
            raise NotModelled(f"execve of {operation.path}")
        raise Errno(_REFUSED[operation.path])
    for actor in _threads(world, operation.actor):
        if actor != operation.actor:
            _end(world, actor)
    world.remove_enablers(process)
    _wake(world, process)
    before = list(dict.fromkeys(process.slots.values()))
    owners = process.memory.owners()
    if process.leader is not None:
        # de_thread(): the thread takes over the id of its leader.
        process.tid = process.leader.tid
        process.leader = None
    process.memory = AddressSpace()
    process.slots = {
        slot: process.slots[slot] for slot in process.kept_over_exec & set(process.slots)
    }
    for file in before:
        world.close(file)
    world.rings_unmapped(owners)
    return Answer(None)


def exit_group(world: World, process: Process, operation: ops.Exit | tasks.Die) -> Answer:
    """exit_group(2), or SIGKILL: all threads of a process end.

    With process 1 all of its PID namespace ends (pid_namespace.c:zap_pid_ns_processes).
    """
    ended = _threads(world, operation.actor)
    if process.is_init:
        inside = process.pid_namespace
        ended = [name for name, each in world.processes.items() if each.pid_namespace is inside]
    for actor in ended:
        _end(world, actor)
    return Answer(0)


def exit_task(world: World, process: Process, operation: tasks.ExitTask) -> Answer:
    """exit(2) of one task."""
    _end(world, operation.actor)
    return Answer(0)


def _threads(world: World, actor: str) -> list[str]:
    """The actors of all threads of a process."""
    process = world.process(actor)
    leader = process.leader or process
    return [name for name, each in world.processes.items() if (each.leader or each) is leader]


def _end(world: World, actor: str) -> None:
    """do_exit(): release what no other task shares."""
    process = world.processes.pop(actor)
    if any(each.driver is process for each in world.processes.values()):
        raise NotModelled("the end of a process that drives tasks")
    _wake(world, process)
    for file in dict.fromkeys(process.slots.values()):
        world.close(file)
    world.rings_unmapped(process.memory.owners())
    for event in world.perf_events:
        # An empty list would mean all processes.
        event.tasks = [task for task in event.tasks if task is not process] or event.tasks
    world.remove_enablers(process)


def pin(world: World, process: Process, operation: ops.Pin) -> Answer:
    """sched_setaffinity(2) with one CPU."""
    process.cpu = operation.cpu
    return Answer(0)


def fifo(world: World, process: Process, operation: ops.Fifo) -> Answer:
    """sched_setscheduler(2): a priority changes no answer, only which ones are likely."""
    return Answer(0)


def performer(world: World, operation: ops.Operation) -> Process:
    """The process of an operation.

    Raises NotModelled if it does not exist, and for a vfork parent that waits for its child.
    """
    if isinstance(operation, ops.Spawn):
        world.processes[operation.actor] = Process(tid=operation.actor)
    process = world.process(operation.actor)
    outside = isinstance(operation, (ops.Load, ops.Store, tasks.Die))
    if process.waits_for is not None and not outside:
        raise NotModelled(f"{operation.actor!r} waits for its vfork child")
    return process


def _wake(world: World, process: Process) -> None:
    """mm_release(): wake the parent of a vfork."""
    for each in world.processes.values():
        if each.waits_for is process:
            each.waits_for = None


# Descriptors


def keep_over_exec(world: World, process: Process, operation: tasks.KeepOverExec) -> Answer:
    """fcntl(2) of F_SETFD without FD_CLOEXEC."""
    process.file(operation.slot)
    process.kept_over_exec.add(operation.slot)
    return Answer(0)


def limit_descriptors(world: World, process: Process, operation: tasks.LimitDescriptors) -> Answer:
    """setrlimit(2) of RLIMIT_NOFILE."""
    process.rlimit_nofile = operation.most
    return Answer(0)


def check_room(process: Process) -> None:
    """alloc_fd(), before path lookup.  Raises Errno, NotModelled."""
    if process.rlimit_nofile == 0:
        raise Errno("EMFILE")
    if process.rlimit_nofile is not None and process.rlimit_nofile < 1024:
        raise NotModelled("RLIMIT_NOFILE of 1 to 1023")


HANDLERS: Handlers = {
    ops.Spawn: spawn,
    ops.Fork: fork,
    ops.Exit: exit_group,
    ops.Pin: pin,
    ops.Fifo: fifo,
    tasks.SpawnDriver: spawn,
    tasks.Clone: clone,
    tasks.Exec: execute,
    tasks.ExitTask: exit_task,
    tasks.Die: exit_group,
    tasks.KeepOverExec: keep_over_exec,
    tasks.LimitDescriptors: limit_descriptors,
}
