"""Operations on AF_UNIX datagram sockets: pairs, options, and descriptors passed over them."""

from __future__ import annotations

import socket
import struct

from conformance.ops.calls import ANSWER_PAGE, STRUCT_PAGE, Call, fd, map_page, sys_call
from conformance.ops.operation import Operation, Resources

# Where the parts of a message are in the scratch page.
_MESSAGE = STRUCT_PAGE
_IOVEC, _BYTE, _CONTROL = _MESSAGE + 64, _MESSAGE + 96, _MESSAGE + 128
# struct cmsghdr and one descriptor: their size with padding, and where the descriptor is.
_CONTROL_LENGTH, _PASSED = 24, _CONTROL + 16


class Socketpair(Operation, frozen=True):
    """socketpair(2) of non-blocking AF_UNIX datagram sockets."""

    slot: int
    other_slot: int

    def c_text(self) -> str:
        slots = f"{{&fd{self.slot}, &fd{self.other_slot}}}"
        return f"socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, {slots})"

    def calls(self) -> list[Call]:
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        return [
            map_page(ANSWER_PAGE),
            sys_call("socketpair", socket.AF_UNIX, kind, 0, ANSWER_PAGE),
            ["take_fd", ANSWER_PAGE, self.slot],
            ["take_fd", ANSWER_PAGE + 4, self.other_slot],
        ]

    def record(self, resources: Resources) -> None:
        resources.slots |= {self.slot, self.other_slot}


class Setsockopt(Operation, frozen=True):
    """setsockopt(2) with ``length`` bytes at ``address``."""

    slot: int
    level: int
    option: int
    address: int
    length: int

    def c_text(self) -> str:
        value = f"(void *){self.address:#x}, {self.length}"
        return f"setsockopt(fd{self.slot}, {self.level}, {self.option}, {value})"

    def calls(self) -> list[Call]:
        value = (self.address, self.length)
        return [sys_call("setsockopt", fd(self.slot), self.level, self.option, *value)]


class SendDescriptor(Operation, frozen=True):
    """sendmsg(2) of one byte and the descriptor ``passed`` (SCM_RIGHTS)."""

    slot: int
    passed: int

    def c_text(self) -> str:
        return f"sendmsg(fd{self.slot}, SCM_RIGHTS(fd{self.passed}), 0)"

    def calls(self) -> list[Call]:
        return [
            *_message(),
            ["put_fd", _PASSED, self.passed],
            sys_call("sendmsg", fd(self.slot), _MESSAGE, 0),
        ]


class ReceiveDescriptor(Operation, frozen=True):
    """recvmsg(2) of one byte and a descriptor into ``new_slot``, with MSG_CMSG_CLOEXEC."""

    slot: int
    new_slot: int

    def c_text(self) -> str:
        message = f"recvmsg(fd{self.slot}, &message, MSG_CMSG_CLOEXEC)"
        return f"fd{self.new_slot} = SCM_RIGHTS({message})"

    def calls(self) -> list[Call]:
        flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        return [
            *_message(),
            sys_call("recvmsg", fd(self.slot), _MESSAGE, flags),
            ["take_fd", _PASSED, self.new_slot],
        ]

    def record(self, resources: Resources) -> None:
        resources.slots.add(self.new_slot)


def _message() -> list[Call]:
    """Store a struct msghdr with one byte of data and room for one descriptor."""
    header = struct.pack("<QIIQQQQII", 0, 0, 0, _IOVEC, 1, _CONTROL, _CONTROL_LENGTH, 0, 0)
    iovec = struct.pack("<QQ", _BYTE, 1)
    # cmsg_len does not count the padding after the descriptor.
    length = _PASSED + 4 - _CONTROL
    control = struct.pack("<QIIi", length, socket.SOL_SOCKET, socket.SCM_RIGHTS, -1)
    return [
        map_page(_MESSAGE),
        ["poke", _MESSAGE, header.hex()],
        ["poke", _IOVEC, iovec.hex()],
        ["poke", _CONTROL, control.hex()],
    ]
