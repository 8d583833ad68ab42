"""What a machine has to do when it goes on from a saved state: it is later, and it is not alone."""

from __future__ import annotations

import os
import struct

from vm.guest import syscalls

_SYS_IOCTL = 16
#: include/uapi/linux/random.h: add entropy to the pool, and make the generator use it at once.
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def wake(nonce: str, nanoseconds: int, seed: bytes) -> bytes:
    """Set the clock, stir the random numbers, and prove who and when we are.

    The answer is the nonce and this boot's id.  Raises OSError.
    """
    import time

    time.clock_settime_ns(time.CLOCK_REALTIME, nanoseconds)
    _stir(seed)
    descriptor = os.open(BOOT_ID, os.O_RDONLY)
    try:
        boot_id = os.read(descriptor, 64).decode().strip()
    finally:
        os.close(descriptor)
    return f"{nonce} {boot_id}".encode()


def _stir(seed: bytes) -> None:
    """Machines from one state would draw the same random numbers (random(4))."""
    pool = struct.pack("ii", len(seed) * 8, len(seed)) + seed
    descriptor = os.open("/dev/urandom", os.O_RDWR)
    try:
        for request, argument in (
            (_RNDADDENTROPY, syscalls.place(pool)),
            (_RNDRESEEDCRNG, 0),
        ):
            _, errno = syscalls.syscall(_SYS_IOCTL, descriptor, request, argument)
            if errno:
                raise OSError(errno, os.strerror(errno))
    finally:
        os.close(descriptor)
