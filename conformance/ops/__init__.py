"""Operations: what a client can do, at the level of system calls.

An operation is a frozen description of one system call by one actor (a process or a task), with
all numbers and bytes.  Model and guest execute the same operations; nothing here knows either.
File descriptors are named by ``slot``, a number that the program chooses and that fork copies
like the descriptor table.  Addresses, lengths and offsets are in bytes; addresses are absolute,
because programs map memory at fixed addresses.

To add an operation:

1. Write its class here, in the module of its subject.  ``c_text()`` is the C call that failures
   show, ``calls()`` its encoding for the agent, ``decode()`` the observation from the replies if
   it is more than the last value and data.  ``record()`` and the class variables of Operation
   say what the operation leaves in its process and in the guest.
2. Write its rule in the model and enter it in the table HANDLERS of the rule's module; without a
   rule the model raises NotModelled.
3. Give the client a method that performs it.

``tests/ops/test_operations.py`` demands an example and a rule.
"""

from conformance.ops.bpf import Bpf
from conformance.ops.decoding.file_views import View
from conformance.ops.descriptors import (
    Close,
    Dup,
    Ioctl,
    IoctlDescriptor,
    Lseek,
    Open,
    StoreDescriptor,
)
from conformance.ops.file_attributes import Chmod, Chown, Getdents, Mkdir, Mknod, Ownership
from conformance.ops.files import (
    KernelMemory,
    MakeDirectory,
    ReadFile,
    RemoveDirectory,
    Stat,
    WriteFile,
    WritePid,
)
from conformance.ops.memory import (
    Discard,
    Load,
    MemoryFile,
    Mmap,
    Mprotect,
    Mremap,
    Munmap,
    Store,
    StoreNumber,
    Truncate,
)
from conformance.ops.operation import Observation, Operation, Watch, error_name
from conformance.ops.perf import PerfEventOpen, ReadRing
from conformance.ops.processes import Exit, Fifo, Fork, Pin, Setuid, Spawn
from conformance.ops.programs import RunProgram, Tracer
from conformance.ops.sockets import ReceiveDescriptor, SendDescriptor, Setsockopt, Socketpair
from conformance.ops.trace_pipe import ReadPage, ReadPipe
from conformance.ops.transfers import Pwrite, Pwritev, Read, SubmitWrite, Write, Writev
