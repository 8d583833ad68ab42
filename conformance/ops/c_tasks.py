"""Operations of tasks as statements of C (see as_c.py)."""

from __future__ import annotations

from conformance.ops import tasks

_FLAGS = {
    tasks.CLONE_VM: "CLONE_VM",
    0x200: "CLONE_FS",
    tasks.CLONE_FILES: "CLONE_FILES",
    0x800: "CLONE_SIGHAND",
    tasks.CLONE_VFORK: "CLONE_VFORK",
    tasks.CLONE_THREAD: "CLONE_THREAD",
}


def statement(operation: tasks.TaskOperation) -> str:
    """One statement, without its semicolon."""
    match operation:
        case tasks.SpawnDriver():
            return "/* new process */"
        case tasks.Clone(child=child, flags=flags):
            names = [name for bit, name in _FLAGS.items() if flags & bit]
            if not flags & tasks.CLONE_THREAD:
                names.append("SIGCHLD")
            return f"{child} = clone({' | '.join(names)}, 0, 0, 0, 0)"
        case tasks.Exec(path=path):
            return f'execve("{path or "/proc/self/exe"}", argv, envp)'
        case tasks.ExitTask(status=status):
            return f"syscall(SYS_exit, {status})"
        case tasks.Die():
            return f"kill({operation.actor}, SIGKILL)"
        case tasks.KeepOverExec(slot=slot):
            return f"fcntl(fd{slot}, F_SETFD, 0)"
        case tasks.LimitDescriptors(most=most):
            return f"setrlimit(RLIMIT_NOFILE, &(struct rlimit){{{most}, 4096}})"
        case tasks.SendDescriptor(slot=slot, passed=passed):
            return f"sendmsg(fd{slot}, SCM_RIGHTS(fd{passed}), 0)"
        case tasks.ReceiveDescriptor(slot=slot, new_slot=new_slot):
            return f"fd{new_slot} = SCM_RIGHTS(recvmsg(fd{slot}, &message, MSG_CMSG_CLOEXEC))"
        case _:
            return f"/* int $0x80: */ {_of_32_bits(operation)}"


def _of_32_bits(operation: tasks.TaskOperation) -> str:
    match operation:
        case tasks.Ioctl32(slot=slot, request=request, argument=argument):
            return f"ioctl(fd{slot}, {request:#x}, {argument:#x})"
        case tasks.Read32(slot=slot, count=count):
            return f"read(fd{slot}, buffer, {count})"
        case tasks.Write32(slot=slot, address=address, count=count):
            return f"write(fd{slot}, (void *){address:#x}, {count})"
        case tasks.Writev32(slot=slot, address=address, count=count):
            return f"writev(fd{slot}, (struct iovec *){address:#x}, {count})"
        case tasks.Mmap32(address=address, length=length, slot=slot, offset=offset):
            rights = "PROT_READ | PROT_WRITE" if operation.protection & 2 else "PROT_READ"
            kind = "MAP_SHARED" if operation.flags & 1 else "MAP_PRIVATE"
            flags = f"MAP_FIXED_NOREPLACE | {kind}"
            return (
                f"mmap2((void *){address:#x}, {length:#x}, {rights}, {flags}, fd{slot}, {offset})"
            )
    raise TypeError(f"operation without a form in C: {operation!r}")
