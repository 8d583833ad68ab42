"""user_events_data of the first version, where a descriptor is one event.

Write, delete and close are those of ``DataFile``.
"""

from __future__ import annotations

from conformance import ops
from conformance.abi import rfc_v1
from conformance.client.addresses import STRING
from conformance.client.data_file import DataFile, c_string
from conformance.ops import Observation


def register(data: DataFile, definition: str | bytes) -> Observation:
    """DIAG_IOCSREG of a definition; the value is the index in the status page."""
    actor = data.process.actor
    return data.process.run(
        ops.Store(actor, STRING, c_string(definition)),
        ops.Ioctl(actor, data.slot, rfc_v1.DIAG_IOCSREG, STRING),
    )


def register_at(data: DataFile, address: int) -> Observation:
    """DIAG_IOCSREG of memory at an address."""
    return data.ioctl(rfc_v1.DIAG_IOCSREG, address)


def delete_at(data: DataFile, address: int) -> Observation:
    """DIAG_IOCSDEL of memory at an address."""
    return data.ioctl(rfc_v1.DIAG_IOCSDEL, address)


def local_offset(data: DataFile, argument: int = 0) -> Observation:
    """DIAG_IOCQLOCOFFSET: the size of the common fields before the payload."""
    return data.ioctl(rfc_v1.DIAG_IOCQLOCOFFSET, argument)
