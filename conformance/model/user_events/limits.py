"""What root sets for the whole system: how many events there may be, and lockdown.

Source: kernel/sysctl.c:proc_douintvec, proc_get_long; security/lockdown/lockdown.c:lockdown_write.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import CONFIDENTIALITY
from conformance.model.state.world import World
from conformance.model.text import definition

# A number of any base of C, and what may stand behind it; no longer than the kernel's buffer.
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(?![^ \t\n])")
_DIGITS = 20
_LEVELS = ("none", "integrity", "confidentiality")


def check_limited(world: World) -> None:
    """Where a page gives room to events there is no sysctl for their number."""
    if not world.profile.has("remote_enable"):
        raise Errno("ENOENT")


def maximum(world: World) -> int:
    """How many events there may be, as the sysctl shows it."""
    check_limited(world)
    return world.table.maximum


def set_maximum(world: World, text: str) -> None:
    """The sysctl is written.  Raises Errno."""
    check_limited(world)
    world.table.maximum = _number(text)


def lock_down(world: World, text: str) -> None:
    """lockdown_write(): a level, higher than that there is.  Raises Errno."""
    level = text.removesuffix("\n")
    if level not in _LEVELS:
        raise Errno("EINVAL")
    if _LEVELS.index(level) <= world.lockdown:
        raise Errno("EPERM")
    world.lockdown = _LEVELS.index(level)
    if world.lockdown >= CONFIDENTIALITY:
        # tracefs_create_dir() makes none; eventfs, of 6.6, makes them when they are looked at.
        world.table.creates_directories = world.profile.has("directories_of_any_name")


def _number(text: str) -> int:
    """proc_douintvec(): an unsigned number of 32 bits.  Raises Errno("EINVAL")."""
    found = _NUMBER.match(text.lstrip(definition.SPACES))
    if found is None or len(found[0]) > _DIGITS:
        raise Errno("EINVAL")
    if text.lstrip(definition.SPACES)[found.end() :].strip(definition.SPACES):
        raise NotModelled("what a sysctl makes of more than a number, which is not ours")
    digits = found[0]
    if digits[:2] in ("0x", "0X"):
        number = int(digits, 16)
    else:
        number = int(digits, 8 if digits.startswith("0") else 10)
    if number >= 1 << 32:
        raise Errno("EINVAL")
    return number
