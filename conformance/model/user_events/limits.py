"""The sysctl user_events_max, and lockdown.

Source: kernel/sysctl.c:proc_douintvec, proc_get_long; security/lockdown/lockdown.c:lockdown_write.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import CONFIDENTIALITY
from conformance.model.state.world import World
from conformance.model.text import definition
from conformance.model.text.numbers import number_in

# A number in C notation, and the delimiter that must follow it.
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(?![^ \t\n])")
_DIGITS = 20
_LEVELS = ("none", "integrity", "confidentiality")


def check_sysctl(world: World) -> None:
    """Raise Errno("ENOENT") on releases with a status page, which have no sysctl."""
    if not world.profile.has("remote_enable"):
        raise Errno("ENOENT")


def read_maximum(world: World) -> int:
    """The value of the sysctl."""
    check_sysctl(world)
    return world.table.maximum


def write_maximum(world: World, text: str) -> None:
    """Write the sysctl; a write of no bytes changes nothing.  Raises Errno."""
    check_sysctl(world)
    if text:
        world.table.maximum = _number(text)


def write_lockdown(world: World, text: str) -> None:
    """lockdown_write(): the level can only rise.  Raises Errno."""
    level = text.removesuffix("\n")
    if level not in _LEVELS:
        raise Errno("EINVAL")
    if _LEVELS.index(level) <= world.lockdown:
        raise Errno("EPERM")
    world.lockdown = _LEVELS.index(level)
    if world.lockdown >= CONFIDENTIALITY:
        # tracefs_create_dir() fails; eventfs (6.6) creates directories on lookup.
        world.table.creates_directories = world.profile.has("directories_of_any_name")


def _number(text: str) -> int:
    """proc_douintvec(): 32 bits, unsigned.  Raises Errno("EINVAL")."""
    found = _NUMBER.match(text.lstrip(definition.SPACES))
    if found is None or len(found[0]) > _DIGITS:
        raise Errno("EINVAL")
    if text.lstrip(definition.SPACES)[found.end() :].strip(definition.SPACES):
        raise NotModelled("text after the number of a sysctl")
    number = number_in(found[0])
    if number is None or number >= 1 << 32:
        raise Errno("EINVAL")
    return number
