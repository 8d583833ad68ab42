"""The C expression of each operation."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from conformance import ops
from conformance.abi.perf import PERF_FLAG_FD_CLOEXEC
from conformance.ops import compat, credentials, tasks
from conformance.ops.allocations import RecordAllocations, Unfreed
from conformance.ops.c_text import DIAG_REQUESTS, flag_names, open_flags, protection
from conformance.ops.calls import MAP_FIXED_NOREPLACE, NUMBERS_32
from conformance.ops.decoding.file_views import View
from conformance.ops.memory import DEVICE_MEMORY, MapDevice, MinorFaults
from conformance.ops.operation import Operation
from conformance.repro import literals as c
from conformance.repro.errors import NotExpressible
from conformance.repro.scopes import Descriptors

_CLONES = tasks.CLONE_FLAGS | credentials.CLONE_FLAGS

Names = Mapping[str, str]
"""The name of each actor in C."""
_Writer = Callable[[Any, Descriptors, Names], str]
"""Makes a text of an operation."""

# What a form may name, beside attributes of the operation: ``{each.count}``.
_PARTS: Mapping[str, _Writer] = {
    # Variables of descriptors, and of those that the call fills.
    "fd": lambda each, fds, _: fds.get(each.actor, each.slot),
    "argument_fd": lambda each, fds, _: fds.get(each.actor, each.argument_slot),
    "passed_fd": lambda each, fds, _: fds.get(each.actor, each.passed),
    "filled": lambda each, fds, _: fds.fill(each.actor, each.slot),
    "new": lambda each, fds, _: fds.fill(each.actor, each.new_slot),
    "other": lambda each, fds, _: fds.fill(each.actor, each.other_slot),
    # Pointers, literals and names of constants.
    "at": lambda each, _, __: c.address(each.address),
    "new_at": lambda each, _, __: c.address(each.new_address),
    "argument": lambda each, _, __: c.address(each.argument),
    "path": lambda each, _, __: c.path(each.path),
    "target": lambda each, _, __: c.path(each.target),
    "id_path": lambda each, _, __: c.path(each.id_path),
    "prefix": lambda each, _, __: c.string(each.prefix.encode()),
    "data": lambda each, _, __: c.data(each.data),
    "sizes": lambda each, _, __: _sizes(each.sizes),
    "flags": lambda each, _, __: open_flags(each.flags),
    "protection": lambda each, _, __: protection(each.protection),
    "request": lambda each, _, __: DIAG_REQUESTS.get(each.request, f"{each.request:#x}UL"),
    "clones": lambda each, _, __: flag_names(each.flags, _CLONES),
    "actor": lambda each, _, names: names[each.actor],
}


class _Fields(Struct, frozen=True):
    """The fields of a form for one operation."""

    each: Operation
    fds: Descriptors
    names: Names

    def __getitem__(self, name: str) -> object:
        return self.each if name == "each" else _PARTS[name](self.each, self.fds, self.names)


def expression(operation: Operation, fds: Descriptors, names: Names) -> str:
    """The call in C.  Raises NotExpressible."""
    form = _FORMS.get(type(operation))
    if form is None:
        missing = f"no C for the operation {type(operation).__name__}"
        raise NotExpressible(_WITHOUT_FORM.get(type(operation), missing))
    if isinstance(form, str):
        return form.format_map(_Fields(operation, fds, names))
    return form(operation, fds, names)


def _mmap(each: ops.Mmap, fds: Descriptors, _: Names) -> str:
    flags, descriptor, offset = each.flags | MAP_FIXED_NOREPLACE, "-1", 0
    if each.slot is None:
        flags |= mmap.MAP_ANONYMOUS
    else:
        descriptor, offset = fds.get(each.actor, each.slot), each.offset
    where = f"{c.address(each.address)}, {each.length:#x}, {protection(each.protection)}"
    return f"mmap({where}, {flag_names(flags, c.MAP_FLAGS)}, {descriptor}, {offset})"


def _become(each: credentials.Become, _: Descriptors, __: Names) -> str:
    listed = ", ".join(map(str, each.groups))
    groups = f"(const gid_t[]){{ {listed} }}" if listed else "NULL"
    call = f"become({each.uid}, {each.gid}, {len(each.groups)}, {groups})"
    return f"(prctl(PR_SET_KEEPCAPS, 1), {call})" if each.keep else call


def _seccomp(each: credentials.Seccomp, _: Descriptors, __: Names) -> str:
    numbers = ", ".join(f"SYS_{name}" for name in each.refused)
    return f"refuse({each.errno}, {len(each.refused)}, (const int[]){{ {numbers} }})"


def _mount(each: credentials.Mount, _: Descriptors, __: Names) -> str:
    texts = ", ".join(c.path(text) for text in (each.source, each.target, each.kind))
    flags = flag_names(each.flags, credentials.MOUNT_FLAGS)
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
    code += "_FIXED" if each.registered else ""
    where = f"(unsigned long)({c.address(each.address)}), {each.count}"
    return f"submit({code}, {fds.get(each.actor, each.slot)}, {where}, {each.offset}UL)"


def _mmap32(each: compat.Mmap32, fds: Descriptors, _: Names) -> str:
    flags = each.flags | MAP_FIXED_NOREPLACE
    where = f"{each.address:#x}, {each.length:#x}, {protection(each.protection)}"
    file = f"(unsigned long){fds.get(each.actor, each.slot)}, {each.offset // mmap.PAGESIZE}"
    return f"int80({NUMBERS_32['mmap2']}, {where}, {flag_names(flags, c.MAP_FLAGS)}, {file})"


def _int80(name: str, arguments: str) -> str:
    """The form of a 32-bit call of a descriptor with two arguments."""
    return f"int80({NUMBERS_32[name]}, (unsigned long){{fd}}, {arguments}, 0, 0, 0)"


def _bpf(each: ops.Bpf, fds: Descriptors, _: Names) -> str:
    call = f"syscall(SYS_bpf, {each.command}, {c.address(each.address)}, {each.size})"
    return call if each.slot is None else f"{fds.fill(each.actor, each.slot)} = (int){call}"


# How the text of a file is reduced to what its view compares.
_VIEWS: Mapping[View, str] = {
    View.DEFINITIONS: "without_users({})",
    View.STRUCTURE: "without_lengths(without_id({}))",
    View.ARRAYS: "without_id({})",
    View.RECORDS: "records({}, {sizes})",
    View.DISTINCT: "distinct(records({}, {sizes}))",
    View.COUNTS: (
        'without_lines({}, 3, (const char *const[]){{ "bytes:", "oldest event ts:", "now ts:" }})'
    ),
    View.TRIGGERS: "triggers({})",
    View.ERRORS: "without_times({})",
}


def _read_file(each: ops.ReadFile, _: Descriptors, __: Names) -> str:
    form = _VIEWS.get(each.view, "{}")
    text = form.format(f"cat({c.path(each.path)})", sizes=_sizes(each.sizes))
    if each.view in (View.OWN, View.DEFINITIONS) and each.prefix:
        return f"own_lines({text}, {c.string(each.prefix.encode())})"
    return text


def _sizes(payloads: tuple[int, ...]) -> str:
    """Payload sizes as two arguments."""
    listed = ", ".join(map(str, payloads))
    return f"{len(payloads)}, (const int[]){{ {listed} }}" if payloads else "0, NULL"


# Forms with fields, and functions where one form does not do.
_FORMS: Mapping[type[Operation], str | _Writer] = {
    ops.Open: lambda each, fds, _: (
        f"{fds.fill(each.actor, each.slot)} = open({c.path(each.path)}, "
        f"{open_flags(each.flags | os.O_CLOEXEC)})"
    ),
    ops.Close: "close({fd})",
    ops.Dup: "{new} = fcntl({fd}, F_DUPFD_CLOEXEC, 0)",
    ops.StoreDescriptor: "poke({at}, &{fd}, sizeof(int))",
    ops.Ioctl: "ioctl({fd}, {request}, {argument})",
    ops.IoctlDescriptor: "ioctl({fd}, {request}, {argument_fd})",
    ops.Lseek: "lseek({fd}, {each.offset}, {each.whence})",
    ops.Read: "read({fd}, buffer, {each.count})",
    ops.Write: "write({fd}, {at}, {each.count}UL)",
    ops.Pwrite: "syscall(SYS_pwrite64, {fd}, {at}, {each.count}UL, {each.offset}L)",
    ops.Writev: "syscall(SYS_writev, {fd}, {at}, {each.count}L)",
    ops.Pwritev: "syscall(SYS_pwritev, {fd}, {at}, {each.count}L, {each.offset}L, 0L)",
    ops.SubmitWrite: _submit,
    ops.Mmap: _mmap,
    ops.Munmap: "munmap({at}, {each.length:#x})",
    ops.Mprotect: "mprotect({at}, {each.length:#x}, {protection})",
    ops.Mremap: (
        "mremap({at}, {each.length:#x}, {each.length:#x}, MREMAP_MAYMOVE | MREMAP_FIXED, {new_at})"
    ),
    ops.Discard: "madvise({at}, {each.length:#x}, MADV_DONTNEED)",
    ops.MemoryFile: '{filled} = memfd_create("", MFD_CLOEXEC)',
    ops.Truncate: "ftruncate({fd}, {each.length:#x})",
    ops.Store: "poke({at}, {data})",
    ops.StoreNumber: "store_number({at}, {path})",
    ops.Load: "peek({at}, {each.length})",
    ops.ReadFile: _read_file,
    MapDevice: (
        "mmap({at}, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, "
        f'open("{DEVICE_MEMORY}", O_RDWR), 0)'
    ),
    ops.WriteFile: "echo({path}, {flags}, {data})",
    ops.WritePid: "echo_pid({path}, {flags})",
    ops.Stat: "mode_of({path})",
    ops.Ownership: "owner_of({path})",
    ops.Getdents: "names_in({fd}, {prefix})",
    ops.MakeDirectory: "mkdir({path}, 0755)",
    ops.Mkdir: "mkdir({path}, 0755)",
    ops.RemoveDirectory: "rmdir({path})",
    ops.Mknod: "mknod({path}, S_IFREG | 0600, 0)",
    ops.Chmod: "chmod({path}, 0{each.mode:o})",
    ops.Chown: "chown({path}, (uid_t){each.uid}, (gid_t){each.gid})",
    ops.PerfEventOpen: (
        "{filled} = (int)syscall(SYS_perf_event_open, {at}, {each.pid}, {each.cpu}, -1, "
        f"{PERF_FLAG_FD_CLOEXEC})"
    ),
    ops.ReadRing: "perf_records({at}, {each.length}, {each.sample_type}UL)",
    ops.ReadPipe: "records(read({fd}, buffer, {each.count}), {sizes})",
    ops.ReadPage: "page_records({fd}, {id_path}, {sizes})",
    ops.Bpf: _bpf,
    ops.Pin: "pin({each.cpu})",
    ops.Fifo: "sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){{ .sched_priority = 1 }})",
    ops.RunProgram: lambda each, _, __: f"run({c.string(f'exec 2>&1; {each.line}'.encode())})",
    ops.Setuid: "become({each.uid}, {each.uid}, 0, NULL)",
    ops.Exit: "leave(me, SYS_exit_group, {each.status})",
    ops.Fork: _fork,
    ops.Socketpair: "socket_pair(&{filled}, &{other})",
    ops.Setsockopt: "setsockopt({fd}, {each.level}, {each.option}, {at}, {each.length})",
    ops.SendDescriptor: "send_descriptor({fd}, {passed_fd})",
    ops.ReceiveDescriptor: "receive_descriptor({fd}, &{new})",
    credentials.Become: _become,
    credentials.Capset: "set_capabilities({each.permitted:#x}, {each.effective:#x})",
    credentials.NoNewPrivileges: "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)",
    credentials.Seccomp: _seccomp,
    credentials.Unshare: "unshare({clones})",
    credentials.Chroot: "chroot({path})",
    credentials.Mount: _mount,
    credentials.Umount: "umount2({target}, MNT_DETACH)",
    tasks.Clone: _clone,
    tasks.Exec: _exec,
    tasks.ExitTask: "leave(me, SYS_exit, {each.status})",
    tasks.Die: "die({actor})",
    tasks.KeepOverExec: "fcntl({fd}, F_SETFD, 0)",
    tasks.LimitDescriptors: "setrlimit(RLIMIT_NOFILE, &(struct rlimit){{ {each.most}, 4096 }})",
    compat.Ioctl32: _int80("ioctl", "{each.request:#x}, {each.argument:#x}"),
    compat.Read32: "read32({fd}, {each.count})",
    compat.Write32: _int80("write", "{each.address:#x}, {each.count}"),
    compat.Writev32: _int80("writev", "{each.address:#x}, {each.count}"),
    compat.Mmap32: _mmap32,
}
# Why operations have no form.
_LEAK = "a leak is judged by what the kernel counts or records, not by any answer"
_WITHOUT_FORM: Mapping[type[Operation], str] = {
    **dict.fromkeys((ops.KernelMemory, RecordAllocations, Unfreed), _LEAK),
    MinorFaults: "the program would count its own page faults, too",
}


def is_known(kind: type[Operation]) -> bool:
    """Whether ``expression`` has the C of an operation, or says why there is none."""
    return kind in _FORMS or kind in _WITHOUT_FORM
