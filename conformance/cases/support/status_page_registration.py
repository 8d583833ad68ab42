"""struct user_reg of 5.18 to 6.0 and of 6.1 to 6.3, packed by hand."""

import struct

from conformance.client.data_file import DataFile
from conformance.client.user_events import UserEvents

IOCSREG = 0xC0082A00
# Members that the kernel overwrites.
UNANSWERED = b"\xee\xee\xee\xee"


def byte_reg(text: int) -> bytes:
    """A 24-byte user_reg of 5.18 to 6.0, for the string at an address."""
    return struct.pack("<IIQ", 24, 0, text) + UNANSWERED * 2


def bit_reg(text: int) -> bytes:
    """A 20-byte user_reg of 6.1 to 6.3, for the string at an address."""
    return struct.pack("<IQ", 20, text) + UNANSWERED * 2


def reg_of(ue: UserEvents, definition: str) -> bytes:
    """A user_reg of the kernel's generation for a definition."""
    text = ue.process.place(definition.encode() + b"\0")
    return byte_reg(text) if ue.profile.generation == "byte-status" else bit_reg(text)


def overlay(raw: bytes, offset: int, content: bytes) -> bytes:
    """A structure with the bytes at an offset replaced."""
    return raw[:offset] + content + raw[offset + len(content) :]


def ioctl_error(data: DataFile, raw: bytes, request: int = IOCSREG) -> str:
    """Errno of an ioctl whose structure ends at unmapped memory."""
    return data.ioctl(request, data.process.place(raw)).errno
