"""write(2) and writev(2) with each pair of errors."""

import os
import struct

from conformance import ops
from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.client.addresses import KERNEL_HALF
from conformance.client.data_file import DataFile

case = surface(
    "write",
    spec="fs/read_write.c",
    doc="Writing Data: nothing is said about which of two errors is reported",
    level="detail",
    needs="payload_size_checked negative_index_refused unreadable_payload_refused "
    "dynamic_fields_validated",
)

# In the order in which the kernel checks.
CORE = (
    ("too-short", "EFAULT"),
    ("index-unreadable", "EFAULT"),
    ("negative-index", "EINVAL"),
    ("unknown-index", "ENOENT"),
    ("short-payload", "EINVAL"),
    ("nobody-listens", "EBADF"),
    ("payload-unreadable", "EFAULT"),
    ("location", "EFAULT"),
)
OF_WRITE = (("read-only", "EBADF"), ("kernel-half", "EFAULT"), ("position", "EFAULT"), *CORE)
OF_WRITEV = (
    ("read-only", "EBADF"),
    ("too-many-parts", "EINVAL"),
    ("vector-unreadable", "EFAULT"),
    ("negative-length", "EINVAL"),
    ("kernel-half", "EFAULT"),
    *CORE,
)
# Whether descriptor or vector is checked first is not up to user_events, and has changed.
VECTOR = ("too-many-parts", "vector-unreadable", "negative-length", "kernel-half")
# The index selects the event, and thus whether it is enabled.
INDEX = ("too-short", "index-unreadable", "negative-index", "unknown-index")
EVENT = ("short-payload", "nobody-listens", "location")
APART = (
    *((index, event) for index in INDEX for event in EVENT),
    *((one, other) for one in INDEX for other in INDEX if one != other),
    ("too-short", "payload-unreadable"),
    ("index-unreadable", "payload-unreadable"),
    *(("kernel-half", mistake) for mistake, _ in CORE),
    ("vector-unreadable", "negative-length"),
    ("vector-unreadable", "kernel-half"),
    *(("vector-unreadable", mistake) for mistake, _ in CORE),
)
OF_PARTS_APART = (*APART, *(("read-only", mistake) for mistake in VECTOR))


def packet(errors: tuple[str, ...]) -> bytes:
    """The readable bytes of a write with the given errors."""
    if "too-short" in errors:
        return b"\0\0\0"
    if "index-unreadable" in errors:
        return b"\0\0"
    index = -1 if "negative-index" in errors else 7 if "unknown-index" in errors else 0
    # The four bytes after the word are in the record, and hold a string.
    where = 0x0100_0000 if "location" in errors else 0x0001_0000
    payload = struct.pack("<II", where, 0)
    if "short-payload" in errors:
        payload = payload[:4]
    if "payload-unreadable" in errors:
        payload = payload[:2]
    return struct.pack("<i", index) + payload


def length(errors: tuple[str, ...]) -> int:
    """The length argument of the write."""
    if "too-short" in errors:
        return 3
    return 8 if "short-payload" in errors else 12


def enabled_data(ue: UserEvents, errors: tuple[str, ...]) -> DataFile:
    """A descriptor with an enabled event."""
    data = ue.open_data(os.O_RDONLY if "read-only" in errors else os.O_RDWR)
    data.register(f"{ue.name()} __rel_loc char[] a; u32 b")
    if "nobody-listens" not in errors:
        ue.tracefs.enable(ue.name())
    return data


@case(spec="vfs_write; trace_events_user.c:user_events_write, user_events_write_core", tier="full")
@variants(pairs(OF_WRITE, APART))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks of write or pwrite fail, errno is that of the first."""
    errors = (first, second)
    data = enabled_data(ue, errors)
    at = KERNEL_HALF if "kernel-half" in errors else ue.process.place(packet(errors))
    if "position" in errors:
        seen = data.pwrite_at(at, length(errors), 5)
    else:
        seen = data.write_at(at, length(errors))
    # Old kernels return the length for a disabled event.
    disabled_errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert seen.errno == (disabled_errno if first == "nobody-listens" else errno)
    assert ue.tracefs.records() == []


@case(spec="vfs_writev; lib/iov_iter.c:import_iovec; trace_events_user.c")
@variants(pairs(OF_WRITEV, OF_PARTS_APART))
def test_pairs_of_parts(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks of writev fail, errno is that of the first."""
    errors = (first, second)
    data = enabled_data(ue, errors)
    at = KERNEL_HALF if "kernel-half" in errors else ue.process.place(packet(errors))
    last = (at, 1 << 63) if "negative-length" in errors else (at, 0)
    vector = b"".join(struct.pack("<QQ", *part) for part in ((at, length(errors)), last))
    if "vector-unreadable" in errors:
        vector = vector[:-1]
    where = ue.process.place(vector)
    count = 1025 if "too-many-parts" in errors else 2
    seen = ue.process.run(ops.Writev(ue.process.actor, data.slot, where, count))
    # Old kernels return the length for a disabled event.
    disabled_errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert seen.errno == (disabled_errno if first == "nobody-listens" else errno)
    assert ue.tracefs.records() == []
