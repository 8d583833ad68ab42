"""struct user_reg of 5.18 to 6.0 and of 6.1 to 6.3, laid out by hand."""

from __future__ import annotations

import struct

from conformance.client.data_file import DataFile
from conformance.client.user_events import UserEvents

IOCSREG = 0xC0082A00
# What the kernel is to overwrite, where it answers.
UNANSWERED = b"\xee\xee\xee\xee"


def byte_reg(text: int) -> bytes:
    """A user_reg of 24 bytes, of 5.18 to 6.0, for the string at an address."""
    return struct.pack("<IIQ", 24, 0, text) + UNANSWERED * 2


def bit_reg(text: int) -> bytes:
    """A user_reg of 20 bytes, of 6.1 to 6.3, for the string at an address."""
    return struct.pack("<IQ", 20, text) + UNANSWERED * 2


def reg_of(ue: UserEvents, definition: str) -> bytes:
    """The user_reg of the kernel's generation that registers a definition."""
    text = ue.process.place(definition.encode() + b"\0")
    return byte_reg(text) if ue.profile.generation == "byte-status" else bit_reg(text)


def overlay(raw: bytes, offset: int, content: bytes) -> bytes:
    """A structure with some bytes put over it."""
    return raw[:offset] + content + raw[offset + len(content) :]


def ioctl_error(data: DataFile, raw: bytes, request: int = IOCSREG) -> str:
    """The error of an ioctl whose structure lies right before unmapped memory."""
    return data.ioctl(request, data.process.place(raw)).errno
