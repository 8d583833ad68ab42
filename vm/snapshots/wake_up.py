"""What a machine has to do when it goes on from a saved state: it is later, and it is not alone.

The supervisor does it without its interpreter, which a machine that has just been restored takes
long to get going under emulation.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from typing import Any

from host.deadline import Deadline
from vm.agent.agent import Agent
from vm.errors import HostTrouble

_SYS_CLOSE, _SYS_IOCTL, _SYS_CLOCK_SETTIME, _SYS_OPENAT = 3, 16, 227, 257
_CLOCK_REALTIME, _AT_FDCWD = 0, -100
#: Actors have the supervisor's slots: one that no program uses.
_SLOT = 1001
#: include/uapi/linux/random.h: add entropy to the pool, and make the generator use it at once.
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207
_RANDOM = b"/dev/urandom\0"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_BYTES = 64
_SEED_BYTES = 64


class WakeUpFailed(HostTrouble):
    """A machine that went on from a saved state and does not do what it is to do then."""


def wake(agent: Agent, deadline: Deadline) -> str:
    """Set the clock, stir the random numbers; the id of the boot that goes on.

    Machines from one state would draw the same random numbers (random(4)).  Raises WakeUpFailed, and
    what the agent raises.
    """
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    now = struct.pack("<qq", seconds, nanoseconds)
    seed = secrets.token_bytes(_SEED_BYTES)
    pool = struct.pack("<ii", len(seed) * 8, len(seed)) + seed

    random = {"fd": _SLOT}
    # In one request: each takes longer than what is asked for.
    calls: list[list[Any]] = [
        ["sys", _SYS_CLOCK_SETTIME, [_CLOCK_REALTIME, {"in": now.hex()}], None],
        ["sys", _SYS_OPENAT, [_AT_FDCWD, {"in": _RANDOM.hex()}, os.O_RDWR], _SLOT],
        ["sys", _SYS_IOCTL, [random, _RNDADDENTROPY, {"in": pool.hex()}], None],
        ["sys", _SYS_IOCTL, [random, _RNDRESEEDCRNG, 0], None],
        ["sys", _SYS_CLOSE, [random], None],
        ["slurp", _BOOT_ID, _BOOT_ID_BYTES],
    ]
    results = agent.call("", calls, (), deadline)
    for call, result in zip(calls, results, strict=True):
        if result["errno"]:
            raise WakeUpFailed(f"the guest in it refuses {call!r:.80}: errno {result['errno']}")
    return bytes.fromhex(results[-1]["data"] or "").decode().strip()
