"""Operations as statements of C, for reports that experts read."""

from __future__ import annotations

import mmap
import os

from conformance.ops import c_credentials, c_tasks, mapping, race, tasks, tracing
from conformance.ops import syscalls as op

_OPEN_FLAGS = ("O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC", "O_CREAT", "O_NONBLOCK", "O_CLOEXEC")
_PROTECTIONS = ("PROT_READ", "PROT_WRITE", "PROT_EXEC")
_LONGEST_DATA = 48


def statement(operation: op.Operation) -> str:
    """One line, ``actor: call(...);``."""
    return f"{operation.actor}: {_call(operation)};"


def _call(operation: op.Operation) -> str:
    match operation:
        case op.Spawn():
            return "/* new process */"
        case op.Fork(child=child):
            return f"{child} = fork()"
        case op.Exit(status=status):
            return f"_exit({status})"
        case op.Setuid(uid=uid):
            return f"setresgid({uid}, {uid}, {uid}); setresuid({uid}, {uid}, {uid})"
        case op.Ioctl(slot=slot, request=request, argument=argument):
            return f"ioctl(fd{slot}, {request:#x}, {argument:#x})"
        case op.IoctlDescriptor(slot=slot, request=request, argument_slot=argument):
            return f"ioctl(fd{slot}, {request:#x}, fd{argument})"
        case op.Pin(cpu=cpu):
            return f"sched_setaffinity(0, 8, &(long){{1 << {cpu}}})"
        case op.Store(address=address, data=data):
            return f"memcpy((void *){address:#x}, {literal(data)}, {len(data)})"
        case op.StoreNumber(address=address, path=path):
            return f'*(long *){address:#x} = atol(cat("{path}"))'
        case op.ReadRing(address=address, length=length):
            return f"memcpy(buffer, (struct perf_event_mmap_page *){address:#x}, {length})"
        case op.Load(address=address, length=length):
            return f"memcpy(buffer, (void *){address:#x}, {length})"
        case op.Mmap() | op.Munmap() | op.Mprotect():
            return _memory(operation)
        case race.Race(tracks=tracks):
            first, *others = map(_track, tracks)
            return " || ".join(
                [
                    first,
                    *(f"{each.actor}: {one}" for each, one in zip(tracks[1:], others, strict=True)),
                ]
            )
        case race.Add(address=address, amount=amount, times=times):
            added = f"__atomic_fetch_add((int *){address:#x}, {amount}, __ATOMIC_SEQ_CST)"
            return f"for (int n = 0; n < {times}; n++) {added}"
        case tasks.TaskOperation():
            return c_tasks.statement(operation)
        case mapping.MappingOperation():
            return _mapping(operation)
        case op.ReadFile(path=path):
            return f'cat("{path}")'
        case op.WriteFile(path=path, data=data, flags=flags):
            return f'echo(open("{path}", {open_flags(flags)}), {literal(data)})'
        case op.Stat(path=path):
            return f'stat("{path}", &st)'
        case _:
            return _descriptor(operation)


def _track(track: race.Track) -> str:
    steps = " ".join(f"{_call(step)};" for step in track.steps)
    return f"for (int i = 0; i < {track.passes}; i++) {{ {steps} }}"


def _descriptor(operation: op.Operation) -> str:
    match operation:
        case op.Open(slot=slot, path=path, flags=flags):
            return f'fd{slot} = open("{path}", {open_flags(flags)})'
        case op.PerfEventOpen(slot=slot, address=address, pid=pid, cpu=cpu):
            attr = f"(struct perf_event_attr *){address:#x}"
            return f"fd{slot} = perf_event_open({attr}, {pid}, {cpu}, -1, PERF_FLAG_FD_CLOEXEC)"
        case op.Close(slot=slot):
            return f"close(fd{slot})"
        case op.Dup(slot=slot, new_slot=new_slot):
            return f"fd{new_slot} = dup(fd{slot})"
        case op.Read(slot=slot, count=count):
            return f"read(fd{slot}, buffer, {count})"
        case op.Write(slot=slot, address=address, count=count):
            return f"write(fd{slot}, (void *){address:#x}, {count})"
        case op.Pwrite(slot=slot, address=address, count=count, offset=offset):
            return f"pwrite(fd{slot}, (void *){address:#x}, {count}, {offset})"
        case op.Writev(slot=slot, address=address, count=count):
            return f"writev(fd{slot}, (struct iovec *){address:#x}, {count})"
        case op.Pwritev(slot=slot, address=address, count=count, offset=offset):
            return f"pwritev(fd{slot}, (struct iovec *){address:#x}, {count}, {offset})"
        case op.Lseek(slot=slot, offset=offset, whence=whence):
            return f"lseek(fd{slot}, {offset}, {whence})"
        case op.Setsockopt(slot=slot, level=level, option=option, address=address, length=length):
            return f"setsockopt(fd{slot}, {level}, {option}, (void *){address:#x}, {length})"
        case op.Socketpair(slot=slot, other_slot=other_slot):
            kind = "SOCK_DGRAM | SOCK_NONBLOCK"
            return f"socketpair(AF_UNIX, {kind}, 0, {{&fd{slot}, &fd{other_slot}}})"
        case op.StoreDescriptor(address=address, slot=slot):
            return f"*(int *){address:#x} = fd{slot}"
        case op.Bpf(command=command, address=address, size=size, slot=made):
            kept = "" if made is None else f"fd{made} = "
            return f"{kept}bpf({command}, (union bpf_attr *){address:#x}, {size})"
    return _tracing(operation)


def _tracing(operation: op.Operation) -> str:
    match operation:
        case tracing.MakeDirectory(path=path):
            return f'mkdir("{path}", 0755)'
        case tracing.RemoveDirectory(path=path):
            return f'rmdir("{path}")'
        case tracing.WritePid(path=path, flags=flags):
            return f'echo(open("{path}", {open_flags(flags)}), getpid())'
        case tracing.ReadPipe(slot=slot, count=count):
            return f"read(fd{slot}, buffer, {count})"
        case tracing.ReadPage(slot=slot):
            return f"read(fd{slot}, buffer, getpagesize())"
        case tracing.SubmitWrite(slot=slot, address=address, count=count, offset=offset):
            kind = "writev" if operation.vector else "write"
            return f"io_uring_prep_{kind}(sqe, fd{slot}, (void *){address:#x}, {count}, {offset})"
    return c_credentials.call(operation)


def _memory(operation: op.Mmap | op.Munmap | op.Mprotect) -> str:
    match operation:
        case op.Mmap(address=address, length=length, protection=prot, flags=flags, slot=slot):
            kind = "MAP_SHARED" if flags & mmap.MAP_SHARED else "MAP_PRIVATE"
            file = f"{kind} | MAP_ANONYMOUS, -1" if slot is None else f"{kind}, fd{slot}"
            return (
                f"mmap((void *){address:#x}, {length:#x}, {protection(prot)}, "
                f"MAP_FIXED_NOREPLACE | {file}, {operation.offset})"
            )
        case op.Munmap(address=address, length=length):
            return f"munmap((void *){address:#x}, {length:#x})"
        case op.Mprotect(address=address, length=length, protection=prot):
            return f"mprotect((void *){address:#x}, {length:#x}, {protection(prot)})"


def _mapping(operation: mapping.MappingOperation) -> str:
    match operation:
        case mapping.Mremap(address=address, length=length, new_address=new):
            flags = "MREMAP_MAYMOVE | MREMAP_FIXED"
            return f"mremap((void *){address:#x}, {length:#x}, {length:#x}, {flags}, {new:#x})"
        case mapping.Discard(address=address, length=length):
            return f"madvise((void *){address:#x}, {length:#x}, MADV_DONTNEED)"
        case mapping.MemoryFile(slot=slot):
            return f'fd{slot} = memfd_create("", MFD_CLOEXEC)'
        case mapping.Truncate(slot=slot, length=length):
            return f"ftruncate(fd{slot}, {length:#x})"
    raise TypeError(f"operation without a form in C: {operation!r}")


def protection(bits: int) -> str:
    """PROT_* names of mmap(2) protection bits."""
    names = [name for name in _PROTECTIONS if bits & getattr(mmap, name)]
    return " | ".join(names) or "PROT_NONE"


def open_flags(flags: int) -> str:
    """O_* names of open(2) flags."""
    names = [name for name in _OPEN_FLAGS if flags & getattr(os, name)]
    if flags & os.O_ACCMODE == os.O_RDONLY:
        names.insert(0, "O_RDONLY")
    return " | ".join(names)


def literal(data: bytes) -> str:
    """Bytes as a C string literal, cut short with the rest counted."""
    shown = data[:_LONGEST_DATA]
    text = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in shown
    )
    rest = len(data) - len(shown)
    return f'"{text}"' + (f" /* + {rest} bytes */" if rest else "")
