"""The ioctls of user_events_data: register, unregister and delete.

Source: trace_events_user.c:user_reg_get, user_events_ioctl_reg, user_events_ioctl_del,
user_unreg_get, user_events_ioctl_unreg; before 6.4 the first three of 5.19 and 6.1.
"""

from __future__ import annotations

from conformance.abi import grammar, uapi
from conformance.abi.profile import PLACE_MEMBER, USER_REG_OF, Generation, Profile
from conformance.abi.uapi import (
    USER_EVENT_REG_MULTI_FORMAT,
    USER_EVENT_REG_PERSIST,
    USER_REG,
    USER_UNREG,
    Layout,
)
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import pages
from conformance.model.state.events import Event
from conformance.model.state.process import Enabler, OpenFile, Process
from conformance.model.state.world import World

_WORD_SIZES = (4, 8)
_SIZE_MEMBER = 4
# Releases that take a struct user_reg.
_INTERFACES = {
    Generation.BYTE_STATUS: "5.18 to 6.0",
    Generation.BIT_STATUS: "6.1 to 6.3",
    Generation.REMOTE_ENABLE: "6.4 and later",
}
# fs/ioctl.c:do_vfs_ioctl, file_ioctl: requests that the VFS answers for a regular file.
_OF_THE_VFS = frozenset(
    {
        *(0x5421, 0x541B, 0x5450, 0x5451, 0x5452, 0x5460),  # FIONBIO … FIOQSIZE
        *(0x0001, 0x0002, 0xC004_5877, 0xC004_5878),  # FIBMAP, FIGETBSZ, FIFREEZE, FITHAW
        *(0x4004_9409, 0x4020_940D, 0xC018_9436),  # FICLONE, FICLONERANGE, FIDEDUPERANGE
        *(0xC020_660B, 0x8008_6601, 0x4008_6602),  # FS_IOC_FIEMAP, FS_IOC_GETFLAGS …
        *(0x8004_6601, 0x4004_6602, 0x801C_581F, 0x401C_5820),  # … FS_IOC_FSSETXATTR
        *(0x8011_1500, 0x8081_1501),  # FS_IOC_GETFSUUID, FS_IOC_GETFSSYSFSPATH
        *(0x4030_5828, 0x4030_5829, 0x4030_582A, 0x4030_582B, 0x4030_5839),  # FS_IOC_RESVSP …
        *(0x402C_5828, 0x402C_5829, 0x402C_582A, 0x402C_582B, 0x402C_5839),  # of 32 bits
    }
)


def check_request(request: int) -> None:
    """Raise NotModelled for an ioctl that the VFS answers before the file is asked."""
    if request & 0xFFFFFFFF in _OF_THE_VFS:
        raise NotModelled(f"the ioctl {request & 0xFFFFFFFF:#x} of the VFS")


def ioctl(world: World, process: Process, file: OpenFile, request: int, argument: int) -> int:
    """user_events_ioctl(); raises Errno and RawReturn."""
    number = request & 0xFFFFFFFF
    if number == uapi.DIAG_IOCSREG:
        register = _register_for_page if world.profile.has("status_page") else _register
        try:
            return register(world, process, file, argument)
        except Errno as error:
            other = _other_interface(process, argument, world.profile.generation)
            raise Errno(error.name, "; ".join(filter(None, (error.reason, other)))) from None
    if number == uapi.DIAG_IOCSDEL:
        return _delete(world, process, argument)
    if number == uapi.DIAG_IOCSUNREG and world.profile.has("remote_enable"):
        return _unregister(world, process, argument)
    raise Errno("ENOTTY", f"this kernel knows no request {number:#x}")


def _other_interface(process: Process, argument: int, generation: Generation) -> str:
    """Where struct user_reg has the size of another interface: that it is of this one."""
    try:
        size = int.from_bytes(process.memory.read(argument, _SIZE_MEMBER), "little")
    except Errno:
        return ""
    found = (
        f"a structure of {size} bytes belongs to the interface of {releases}"
        for other, releases in _INTERFACES.items()
        if other is not generation and USER_REG_OF[other].size == size
    )
    return next(found, "")


def copy_struct(process: Process, address: int, layout: Layout, size: int) -> dict[str, int]:
    """copy_struct_from_user(): the members, missing ones 0.

    The tail beyond the layout must be zero and is checked first (check_zeroed_user).
    """
    tail = size - layout.size
    if tail > 0:
        # Word by word: a byte that is not zero is found before a fault after it.
        reach = process.memory.readable(address + layout.size, tail)
        if any(process.memory.read(address + layout.size, reach)):
            reason = f"bytes after the {layout.size} that this kernel knows of are not zero"
            raise Errno("E2BIG", reason)
        if reach < tail:
            raise Errno("EFAULT", f"the {size} bytes of the structure cannot be read")
    raw = process.memory.read(address, min(size, layout.size))
    return layout.unpack(raw.ljust(layout.size, b"\0"))


def copy_string(process: Process, address: int) -> str:
    """strndup_user() with the limit of 512 bytes, NUL included."""
    limit = grammar.MAX_EVENT_DESC
    reach = process.memory.readable(address, limit)
    raw = process.memory.read(address, reach) if reach else b""
    text, nul, _ = raw.partition(b"\0")
    if not nul:
        if reach == limit:
            raise Errno("EINVAL", f"the string has more than {limit} bytes, its NUL included")
        raise Errno("EFAULT", f"the string at {address:#x} cannot be read")
    return text.decode("latin-1")


def _struct_size(process: Process, address: int, least: int) -> int:
    size = int.from_bytes(process.memory.read(address, _SIZE_MEMBER), "little")
    if size > pages.PAGE_SIZE:
        raise Errno("E2BIG", f"size is {size}, more than a page")
    if size < least:
        raise Errno("EINVAL", f"size is {size}, less than the {least} bytes of the structure")
    return size


def _unknown_flags(flags: int, profile: Profile) -> int:
    """The flags beyond USER_EVENT_REG_MAX - 1 of the profile's kernels."""
    if flags & USER_EVENT_REG_MULTI_FORMAT and profile.has("multi_format"):
        flags &= ~USER_EVENT_REG_MULTI_FORMAT
    # Since 6.4 the kernel defines the bit; user_event_parse() refuses it later.
    if flags & USER_EVENT_REG_PERSIST and profile.has("auto_delete"):
        flags &= ~USER_EVENT_REG_PERSIST
    return flags


def _register(world: World, process: Process, file: OpenFile, argument: int) -> int:
    size = _struct_size(process, argument, USER_REG.size)
    reg = copy_struct(process, argument, USER_REG, size)
    address, bit = reg["enable_addr"], reg["enable_bit"]
    unknown = _unknown_flags(reg["flags"], world.profile)
    if unknown:
        raise Errno("EINVAL", f"flags has bits that this kernel does not know: {unknown:#x}")
    if reg["enable_size"] not in _WORD_SIZES:
        raise Errno("EINVAL", f"enable_size is {reg['enable_size']}, neither 4 nor 8")
    if address % reg["enable_size"]:
        reason = f"enable_addr {address:#x} is not aligned to enable_size {reg['enable_size']}"
        raise Errno("EINVAL", reason)
    if bit > reg["enable_size"] * 8 - 1:
        raise Errno("EINVAL", f"enable_bit {bit} is not in a word of {reg['enable_size']} bytes")
    if not pages.is_user_range(address, reg["enable_size"]):
        raise Errno("EFAULT", f"enable_addr {address:#x} is not in user space")
    if process.enablers is None:
        # current_user_event_enabler_exists() creates user_event_mm, even if a later check fails.
        process.enablers = []
        sharers = [each for each in world.processes.values() if each.memory is process.memory]
        if world.profile.fixed("registration-of-a-thread"):
            for each in sharers:
                each.enablers = process.enablers
    if any((e.address, e.bit) == (address, bit) for e in process.enablers):
        reason = f"bit {bit} at {address:#x} is registered already; unregister it first"
        raise Errno("EADDRINUSE", reason)
    place = _place_of_bit(address, bit)
    overlaps = any(_place_of_bit(e.address, e.bit) == place for e in process.enablers)
    if overlaps and world.profile.fixed("overlapping-words"):
        raise Errno("EADDRINUSE", f"bit {bit} at {address:#x} is registered by another address")
    raw = copy_string(process, reg["name_args"])
    event = world.register(raw, reg["flags"], capable=process.credentials.perfmon)
    index = _reference(file, event)
    _create_enabler(world, process, event, address, bit)
    _put_result(process, argument, USER_REG, "write_index", index)
    return 0


def _place_of_bit(address: int, bit: int) -> int:
    """The number of a bit in memory (align_addr_bit)."""
    return address * 8 + bit


def _register_for_page(world: World, process: Process, file: OpenFile, argument: int) -> int:
    """Registration of 5.18 to 6.3, which returns an index in the status page."""
    generation = world.profile.generation
    layout = USER_REG_OF[generation]
    # Up to 6.0 no size is too small: missing members read as zero, and the results are stored past
    # the end.
    least = 0 if generation is Generation.BYTE_STATUS else layout.size
    size = _struct_size(process, argument, least)
    reg = copy_struct(process, argument, layout, size)
    raw = copy_string(process, reg["name_args"])
    event = world.register(raw, 0, capable=process.credentials.perfmon)
    index = _reference(file, event)
    _put_result(process, argument, layout, "write_index", index)
    _put_result(process, argument, layout, PLACE_MEMBER[generation], event.index)
    return 0


def _reference(file: OpenFile, event: Event) -> int:
    """user_events_ref_add(): the write index of an event in this file."""
    if event.serial not in file.events:
        file.events.append(event.serial)
        event.references += 1
    return file.events.index(event.serial)


def _create_enabler(world: World, process: Process, event: Event, address: int, bit: int) -> None:
    """user_event_enabler_create(): set the enable bit to the present status.

    After a fault the event and its write index remain.
    """
    try:
        page = process.memory.word_page(address)
    except Errno:
        fixed = world.profile.fixed("enomem-for-bad-address")
        reason = f"enable_addr {address:#x} is not writable"
        raise Errno("EFAULT" if fixed else "ENOMEM", reason) from None
    page.set_bit(address, bit, on=bool(event.status))
    assert process.enablers is not None
    process.enablers.append(Enabler(event.serial, address, bit))
    event.references += 1


def _put_result(process: Process, argument: int, layout: Layout, member: str, value: int) -> None:
    """put_user(); a fault is ignored."""
    try:
        process.memory.put(argument + layout.member(member).offset, value.to_bytes(4, "little"))
    except Errno:
        return


def _delete(world: World, process: Process, argument: int) -> int:
    """delete_user_event(): all formats of a name, newest first, until one fails."""
    found = world.table.named(copy_string(process, argument))
    if not found:
        raise Errno("ENOENT", "no event has this name")
    for event in found:
        world.delete(event, capable=process.credentials.perfmon)
    return 0


def _copy_unreg(world: World, process: Process, argument: int) -> dict[str, int]:
    """user_unreg_get(): the members."""
    size = _struct_size(process, argument, USER_UNREG.size)
    try:
        unreg = copy_struct(process, argument, USER_UNREG, size)
    except Errno:
        # If the tail is refused, nothing was copied and the members are zero.
        if size > USER_UNREG.size or not _has_reserved_bits(_copied_part(process, argument)):
            raise
        if world.profile.fixed("unreg-reserved-before-copy"):
            raise
        raise Errno("EINVAL") from None
    if _has_reserved_bits(unreg):
        raise Errno("EINVAL", "a reserved member is not zero")
    return unreg


def _copied_part(process: Process, argument: int) -> dict[str, int]:
    """The members of a struct user_unreg that cannot be read whole."""
    reach = process.memory.readable(argument, USER_UNREG.size)
    return USER_UNREG.unpack(process.memory.read(argument, reach).ljust(USER_UNREG.size, b"\0"))


def _has_reserved_bits(unreg: dict[str, int]) -> bool:
    return bool(unreg["__reserved"] or unreg["__reserved2"])


def _unregister(world: World, process: Process, argument: int) -> int:
    unreg = _copy_unreg(world, process, argument)
    address, bit = unreg["disable_addr"], unreg["disable_bit"]
    found = [e for e in process.enablers or [] if (e.address, e.bit) == (address, bit)]
    if not found:
        raise Errno("ENOENT", f"bit {bit} at {address:#x} is not registered by this process")
    for enabler in found:
        enabler.freeing = True
        if not enabler.faulting:
            assert process.enablers is not None
            process.enablers.remove(enabler)
            world.release(enabler.event)
    # The bit is cleared whatever the status of the event; a fault is an error.
    try:
        page = process.memory.word_page(address)
    except Errno as error:
        raise Errno(error.name, f"disable_addr {address:#x} is not writable") from None
    page.set_bit(address, bit, on=False)
    return 0
