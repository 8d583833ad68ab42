"""After restoring a snapshot: set the clock and reseed the RNG.

The supervisor does it with plain system calls, because the first steps of a restored interpreter
are slow under emulation.
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
#: Actors inherit the supervisor's slots, so use one that no program uses.
_SLOT = 1001
#: include/uapi/linux/random.h
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207
_RANDOM = b"/dev/urandom\0"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_BYTES = 64
_SEED_BYTES = 64


class WakeUpFailed(HostTrouble):
    """A restored guest refused a system call."""


def wake_up(agent: Agent, deadline: Deadline) -> str:
    """Set the clock, reseed the RNG and return the guest's boot id.

    Guests restored from one snapshot would otherwise draw the same random numbers (random(4)).
    Raises WakeUpFailed, and what the agent raises.
    """
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    now = struct.pack("<qq", seconds, nanoseconds)
    seed = secrets.token_bytes(_SEED_BYTES)
    pool = struct.pack("<ii", len(seed) * 8, len(seed)) + seed

    random = {"fd": _SLOT}
    # One request: a round trip costs more than the calls.
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
            raise WakeUpFailed(f"the restored guest refused {call!r:.80}: errno {result['errno']}")
    return bytes.fromhex(results[-1]["data"] or "").decode().strip()
