"""The C expression of each operation."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from typing import Any

from conformance import ops
from conformance.abi import uapi
from conformance.abi.perf import PERF_FLAG_FD_CLOEXEC
from conformance.ops import compat, credentials, tasks
from conformance.ops.allocations import RecordAllocations, Unfreed
from conformance.ops.c_text import flag_names
from conformance.ops.calls import MAP_FIXED_NOREPLACE
from conformance.ops.operation import Operation
from conformance.repro import literals as c
from conformance.repro.errors import NotExpressible
from conformance.repro.scopes import Descriptors
from conformance.repro.views import read_file, sizes

_CLONES = {
    tasks.CLONE_VM: "CLONE_VM",
    tasks.CLONE_FS: "CLONE_FS",
    tasks.CLONE_FILES: "CLONE_FILES",
    tasks.CLONE_SIGHAND: "CLONE_SIGHAND",
    tasks.CLONE_VFORK: "CLONE_VFORK",
    tasks.CLONE_THREAD: "CLONE_THREAD",
    credentials.CLONE_NEWNS: "CLONE_NEWNS",
    credentials.CLONE_NEWUSER: "CLONE_NEWUSER",
    credentials.CLONE_NEWPID: "CLONE_NEWPID",
}
_MOUNTS = {
    credentials.MS_RDONLY: "MS_RDONLY",
    credentials.MS_REMOUNT: "MS_REMOUNT",
    credentials.MS_BIND: "MS_BIND",
}
# arch/x86/entry/syscalls/syscall_32.tbl
_IOCTL_32, _WRITE_32, _WRITEV_32, _MMAP2_32 = 54, 4, 146, 192

_REQUESTS = {
    uapi.DIAG_IOCSREG: "DIAG_IOCSREG",
    uapi.DIAG_IOCSDEL: "DIAG_IOCSDEL",
    uapi.DIAG_IOCSUNREG: "DIAG_IOCSUNREG",
}

Names = Mapping[str, str]
"""The name of each actor in C."""
_Writer = Callable[[Any, Descriptors, Names], str]


def expression(operation: Operation, fds: Descriptors, names: Names) -> str:
    """The call in C.  Raises NotExpressible."""
    writer = _WRITERS.get(type(operation))
    if writer is None:
        raise NotExpressible(f"no C for the operation {type(operation).__name__}")
    return writer(operation, fds, names)


def _open(each: ops.Open, fds: Descriptors, _: Names) -> str:
    flags = c.open_flags(each.flags | os.O_CLOEXEC)
    return f"{fds.fill(each.actor, each.slot)} = open({c.path(each.path)}, {flags})"


def _mmap(each: ops.Mmap, fds: Descriptors, _: Names) -> str:
    flags, descriptor, offset = each.flags | MAP_FIXED_NOREPLACE, "-1", 0
    if each.slot is None:
        flags |= mmap.MAP_ANONYMOUS
    else:
        descriptor, offset = fds.get(each.actor, each.slot), each.offset
    where = f"{c.address(each.address)}, {each.length:#x}, {c.protection(each.protection)}"
    return f"mmap({where}, {c.flags_of_mmap(flags)}, {descriptor}, {offset})"


def _request(number: int) -> str:
    return _REQUESTS.get(number, f"{number:#x}UL")


def _memory(each: ops.Operation, _: Descriptors, __: Names) -> str:
    raise NotExpressible("a leak is judged by what the kernel counts or records, not by any answer")


def _become(each: credentials.Become, _: Descriptors, __: Names) -> str:
    listed = ", ".join(map(str, each.groups))
    groups = f"(const gid_t[]){{ {listed} }}" if listed else "NULL"
    call = f"become({each.uid}, {each.gid}, {len(each.groups)}, {groups})"
    return f"(prctl(PR_SET_KEEPCAPS, 1), {call})" if each.keep else call


def _seccomp(each: credentials.Seccomp, _: Descriptors, __: Names) -> str:
    numbers = ", ".join(f"SYS_{name}" for name in each.refused)
    count = len(each.refused)
    return f"refuse({each.errno}, {count}, (const int[]){{ {numbers} }})"


def _mount(each: credentials.Mount, _: Descriptors, __: Names) -> str:
    texts = ", ".join(c.path(text) for text in (each.source, each.target, each.kind))
    flags = flag_names(each.flags, _MOUNTS)
    return f"mount({texts}, {flags}, {c.path(each.options)})"


def _fork(each: ops.Fork, fds: Descriptors, names: Names) -> str:
    fds.inherit(each.child, each.actor, shared=False)
    return f"fork_as({names[each.child]}, &me)"


def _clone(each: tasks.Clone, fds: Descriptors, names: Names) -> str:
    fds.inherit(each.child, each.actor, shared=bool(each.flags & tasks.CLONE_FILES))
    return f"clone_as({names[each.child]}, me, {flag_names(each.flags, _CLONES)})"


def _exec(each: tasks.Exec, fds: Descriptors, _: Names) -> str:
    fds.inherit(each.actor, each.actor, shared=False)
    if not each.path:
        return "execute(me)"
    return f"execve({c.path(each.path)}, (char *[]){{ NULL }}, (char *[]){{ NULL }})"


def _submit(each: ops.SubmitWrite, fds: Descriptors, _: Names) -> str:
    code = "IORING_OP_WRITEV" if each.vector else "IORING_OP_WRITE"
    where = f"(unsigned long)({c.address(each.address)}), {each.count}"
    return f"submit({code}, {fds.get(each.actor, each.slot)}, {where}, {each.offset}UL)"


def _mmap32(each: compat.Mmap32, fds: Descriptors, _: Names) -> str:
    flags = each.flags | MAP_FIXED_NOREPLACE
    where = f"{each.address:#x}, {each.length:#x}, {c.protection(each.protection)}"
    file = f"(unsigned long){fds.get(each.actor, each.slot)}, {each.offset // mmap.PAGESIZE}"
    return f"int80({_MMAP2_32}, {where}, {c.flags_of_mmap(flags)}, {file})"


def _bpf(each: ops.Bpf, fds: Descriptors, _: Names) -> str:
    call = f"syscall(SYS_bpf, {each.command}, {c.address(each.address)}, {each.size})"
    if each.slot is None:
        return call
    return f"{fds.fill(each.actor, each.slot)} = (int){call}"


def _perf(each: ops.PerfEventOpen, fds: Descriptors, _: Names) -> str:
    call = (
        f"syscall(SYS_perf_event_open, {c.address(each.address)}, {each.pid}, {each.cpu}, -1, "
        f"{PERF_FLAG_FD_CLOEXEC})"
    )
    return f"{fds.fill(each.actor, each.slot)} = (int){call}"


def _store(each: ops.Store, _: Descriptors, __: Names) -> str:
    return f"poke({c.address(each.address)}, {c.data(each.data)})"


def _int80(number: int) -> _Writer:
    """A call of descriptor, address, count through the 32-bit entry."""

    def write(each: Any, fds: Descriptors, _: Names) -> str:
        slot = fds.get(each.actor, each.slot)
        if isinstance(each, compat.Ioctl32):
            rest = f"{each.request:#x}, {each.argument:#x}"
        else:
            rest = f"{each.address:#x}, {each.count}"
        return f"int80({number}, (unsigned long){slot}, {rest}, 0, 0, 0)"

    return write


def _plain(form: str) -> _Writer:
    """A call whose arguments are attributes: ``{fd}`` is the descriptor of ``slot``.

    ``{at}`` is the address and ``{path}`` the path as C text.
    """

    def write(each: Any, fds: Descriptors, _: Names) -> str:
        values: dict[str, str] = {}
        if hasattr(each, "slot"):
            values["fd"] = fds.get(each.actor, each.slot)
        if hasattr(each, "address"):
            values["at"] = c.address(each.address)
        for text in ("path", "target"):
            if hasattr(each, text):
                values[text] = c.path(getattr(each, text))
        return form.format(each=each, **values)

    return write


def _filled(form: str, *attributes: str) -> _Writer:
    """A call that fills slots, whose variables replace ``{0}``, ``{1}``."""

    def write(each: Any, fds: Descriptors, _: Names) -> str:
        slot = fds.get(each.actor, each.slot) if hasattr(each, "slot") else ""
        filled = [fds.fill(each.actor, getattr(each, name)) for name in attributes]
        return form.format(*filled, fd=slot, each=each)

    return write


_WRITERS: Mapping[type[Operation], _Writer] = {
    ops.Open: _open,
    ops.Close: _plain("close({fd})"),
    ops.Dup: _filled("{0} = fcntl({fd}, F_DUPFD_CLOEXEC, 0)", "new_slot"),
    ops.StoreDescriptor: lambda each, fds, _: (
        f"poke({c.address(each.address)}, &{fds.get(each.actor, each.slot)}, sizeof(int))"
    ),
    ops.Ioctl: lambda each, fds, _: (
        f"ioctl({fds.get(each.actor, each.slot)}, {_request(each.request)}, "
        f"{c.address(each.argument)})"
    ),
    ops.IoctlDescriptor: lambda each, fds, _: (
        f"ioctl({fds.get(each.actor, each.slot)}, {_request(each.request)}, "
        f"{fds.get(each.actor, each.argument_slot)})"
    ),
    ops.Lseek: _plain("lseek({fd}, {each.offset}, {each.whence})"),
    ops.Read: _plain("read({fd}, buffer, {each.count})"),
    ops.Write: _plain("write({fd}, {at}, {each.count}UL)"),
    ops.Pwrite: _plain("syscall(SYS_pwrite64, {fd}, {at}, {each.count}UL, {each.offset}L)"),
    ops.Writev: _plain("syscall(SYS_writev, {fd}, {at}, {each.count}L)"),
    ops.Pwritev: _plain("syscall(SYS_pwritev, {fd}, {at}, {each.count}L, {each.offset}L, 0L)"),
    ops.SubmitWrite: _submit,
    ops.Mmap: _mmap,
    ops.Munmap: _plain("munmap({at}, {each.length:#x})"),
    ops.Mprotect: lambda each, _, __: (
        f"mprotect({c.address(each.address)}, {each.length:#x}, {c.protection(each.protection)})"
    ),
    ops.Mremap: lambda each, _, __: (
        f"mremap({c.address(each.address)}, {each.length:#x}, {each.length:#x}, "
        f"MREMAP_MAYMOVE | MREMAP_FIXED, {c.address(each.new_address)})"
    ),
    ops.Discard: _plain("madvise({at}, {each.length:#x}, MADV_DONTNEED)"),
    ops.MemoryFile: _filled('{0} = memfd_create("", MFD_CLOEXEC)', "slot"),
    ops.Truncate: _plain("ftruncate({fd}, {each.length:#x})"),
    ops.Store: _store,
    ops.StoreNumber: _plain("store_number({at}, {path})"),
    ops.Load: _plain("peek({at}, {each.length})"),
    ops.ReadFile: lambda each, _, __: read_file(each),
    ops.KernelMemory: _memory,
    RecordAllocations: _memory,
    Unfreed: _memory,
    ops.WriteFile: lambda each, _, __: (
        f"echo({c.path(each.path)}, {c.open_flags(each.flags)}, {c.data(each.data)})"
    ),
    ops.WritePid: lambda each, _, __: f"echo_pid({c.path(each.path)}, {c.open_flags(each.flags)})",
    ops.Stat: _plain("mode_of({path})"),
    ops.Ownership: _plain("owner_of({path})"),
    ops.Getdents: lambda each, fds, _: (
        f"names_in({fds.get(each.actor, each.slot)}, {c.string(each.prefix.encode())})"
    ),
    ops.MakeDirectory: _plain("mkdir({path}, 0755)"),
    ops.Mkdir: _plain("mkdir({path}, 0755)"),
    ops.RemoveDirectory: _plain("rmdir({path})"),
    ops.Mknod: _plain("mknod({path}, S_IFREG | 0600, 0)"),
    ops.Chmod: _plain("chmod({path}, 0{each.mode:o})"),
    ops.Chown: _plain("chown({path}, (uid_t){each.uid}, (gid_t){each.gid})"),
    ops.PerfEventOpen: _perf,
    ops.ReadRing: _plain("perf_records({at}, {each.length}, {each.sample_type}UL)"),
    ops.ReadPipe: lambda each, fds, _: (
        f"records(read({fds.get(each.actor, each.slot)}, buffer, {each.count}), "
        f"{sizes(each.sizes)})"
    ),
    ops.ReadPage: lambda each, fds, _: (
        f"page_records({fds.get(each.actor, each.slot)}, {c.path(each.id_path)}, "
        f"{sizes(each.sizes)})"
    ),
    ops.Bpf: _bpf,
    ops.Pin: _plain("pin({each.cpu})"),
    ops.Fifo: _plain(
        "sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){{ .sched_priority = 1 }})"
    ),
    ops.RunProgram: lambda each, _, __: f"run({c.string(f'exec 2>&1; {each.line}'.encode())})",
    ops.Setuid: _plain("become({each.uid}, {each.uid}, 0, NULL)"),
    ops.Exit: _plain("leave(me, SYS_exit_group, {each.status})"),
    ops.Fork: _fork,
    ops.Socketpair: _filled("socket_pair(&{0}, &{1})", "slot", "other_slot"),
    ops.Setsockopt: _plain("setsockopt({fd}, {each.level}, {each.option}, {at}, {each.length})"),
    ops.SendDescriptor: lambda each, fds, _: (
        f"send_descriptor({fds.get(each.actor, each.slot)}, {fds.get(each.actor, each.passed)})"
    ),
    ops.ReceiveDescriptor: _filled("receive_descriptor({fd}, &{0})", "new_slot"),
    credentials.Become: _become,
    credentials.Capset: _plain("set_capabilities({each.permitted:#x}, {each.effective:#x})"),
    credentials.NoNewPrivileges: _plain("prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)"),
    credentials.Seccomp: _seccomp,
    credentials.Unshare: lambda each, _, __: f"unshare({flag_names(each.flags, _CLONES)})",
    credentials.Chroot: _plain("chroot({path})"),
    credentials.Mount: _mount,
    credentials.Umount: _plain("umount2({target}, MNT_DETACH)"),
    tasks.Clone: _clone,
    tasks.Exec: _exec,
    tasks.ExitTask: _plain("leave(me, SYS_exit, {each.status})"),
    tasks.Die: lambda each, _, names: f"die({names[each.actor]})",
    tasks.KeepOverExec: _plain("fcntl({fd}, F_SETFD, 0)"),
    tasks.LimitDescriptors: _plain(
        "setrlimit(RLIMIT_NOFILE, &(struct rlimit){{ {each.most}, 4096 }})"
    ),
    compat.Ioctl32: _int80(_IOCTL_32),
    compat.Read32: _plain("read32({fd}, {each.count})"),
    compat.Write32: _int80(_WRITE_32),
    compat.Writev32: _int80(_WRITEV_32),
    compat.Mmap32: _mmap32,
}


def is_known(kind: type[Operation]) -> bool:
    """Whether ``expression`` has the C of an operation."""
    return kind in _WRITERS
