"""Actions on events: register, write, unregister, delete, and ioctls with bad arguments."""

from __future__ import annotations

import os
import struct
from typing import Any

from conformance.abi import uapi
from conformance.client.addresses import KERNEL_HALF, PAGE, STRING, STRUCT
from conformance.client.tracefs import SYSTEM
from conformance.session.explore.scene import Registered, Scene, is_task

# Fields and a payload that fits them.
FIELDS: tuple[tuple[str, bytes], ...] = (
    ("u32 a", b"\1\0\0\0"),
    ("", b""),
    ("u8 a; u64 b", b"\1" + bytes(7) + b"\2"),
    ("char[8] s", b"abc\0defg"),
    ("__rel_loc char[] s", struct.pack("<HH", 0, 3) + b"hi\0"),
    ("__data_loc char[] s", struct.pack("<HH", 12, 3) + b"hi\0"),
    ("u32 a; __rel_loc char[] s", struct.pack("<IHH", 7, 0, 4) + b"abc\0"),
    ("__rel_loc char[] s; u8 b", struct.pack("<HHB", 1, 3, 9) + b"hi\0"),
    ("__data_loc char[] s; __rel_loc char[] t", struct.pack("<HHHH", 16, 2, 2, 2) + b"s\0t\0"),
    ("__data_loc u8[] d; u16 e", struct.pack("<HHH", 14, 2, 9) + b"\1\2"),
    ("struct point p 12; s16 q", bytes(range(14))),
    ("unsigned long long a; int b", bytes(range(12))),
    ("s8 a; u16 b; s32 c; s64 d", bytes(range(15))),
    ("short a; unsigned short b; char c; unsigned char d", bytes(range(6))),
    ("char[3] a; unsigned char[2] b; u8[4] c", bytes(range(9))),
    ("u32  a;", b"\1\0\0\0"),
    ("u32 a;u8 b", b"\1\0\0\0\2"),
    ("u32 a;u8 b;", b"\1\0\0\0\2"),
    ("__rel_loc char[] s;__rel_loc char[] t", struct.pack("<HHHH", 4, 3, 3, 2) + b"hi\0t\0"),
    ("unsigned int a", b"\1\0\0\0"),
    ("; ".join(f"u8 f{n}" for n in range(9)), bytes(range(9))),
)
# Refused, or read in another way than one might think.
ODD_FIELDS = (
    *("u32", "u32 a b", "foo a", "char[] s", "char[0] s", "char[1025] s", "struct p"),
    *("__data_loc char s", "__rel_loc u8[] a; u8 a", "u32 a 4", "char[3] s;;", " u32 a"),
    *("struct my_struct p 4294967295", "s8[4] x", "u32 __a; u32 __A", "unsigned a"),
    *("long long b", "u32 a,b", "u32 a;; u8 b", "char[1024] s", "char[-1] s", "char[x] s"),
    *("struct p q 0", "struct p q x", "u32 a; u64 a", "char[ 4] s", "char [4] s", "u32 a ;u8 b"),
    *("char[1000] a; char[1000] b", "u32 " + "x" * 300, "__rel_loc", "__data_loc char[]"),
)
# All begin as names of this program, which tells them from those of others.  DIAG_IOCSDEL deletes
# no name of 512 bytes or more, which dynamic_events can create.
_ODD_NAMES = ("/x", " ", "x" * 240, "x" * 400, "-y", ";", ":BPF_ITER", ":", " ;")
_REG_SIZES = (27, 29, 32, 0, 4, PAGE, PAGE + 1)
_MANY = (3, 5, 9, 17, 33, 66, 260)


def definition(scene: Scene, name: str) -> tuple[str, bytes]:
    """A definition of a name, mostly the one that it has, and a payload."""
    choices = scene.choices
    if choices.rarely(16):
        name += choices.of(_ODD_NAMES)
    if name in scene.definitions and not choices.rarely(8):
        fields, payload = scene.definitions[name]
    elif choices.rarely(8):
        fields, payload = choices.of(ODD_FIELDS), b"\1\0\0\0"
    else:
        fields, payload = scene.definitions[name] = choices.of(FIELDS)
    return f"{name} {fields}" if fields else name, payload


def register(scene: Scene) -> None:
    """DIAG_IOCSREG, seldom with arguments that the kernel refuses."""
    _register(scene, scene.file(), scene.name())


def again(scene: Scene) -> None:
    """The event of a registration once more, through another descriptor or for another bit."""
    found = scene.registration()
    if found is None:
        register(scene)
    else:
        data = found.data if scene.choices.rarely(2) else scene.file()
        _register(scene, data, found.name, found.address)


def _register(scene: Scene, data: Any, name: str, known: int | None = None) -> None:
    choices = scene.choices
    text, payload = definition(scene, name)
    options: dict[str, Any] = {}
    address = bit = 0
    if scene.remote:
        address, size, bit = _place(scene, data.process)
        if known is not None and choices.rarely(3):
            address, size, bit = known, 4, choices.of((0, 1, 8, 31))
        flags = choices.of((0, 0, 0, 1, 2, 0, 3))
        if choices.rarely(16):
            size, bit, flags = _odd_member(scene, size, bit, flags)
        options = {"word": scene.watched(data.process, address, size), "bit": bit, "flags": flags}
        options |= {"enable_addr": address, "enable_size": size}
    if choices.rarely(24):
        options["struct_size"] = choices.of(_REG_SIZES)
        options["tail"] = choices.of((b"", b"\0" * 8, b"\1"))
    if choices.rarely(40):
        options["name_args"] = choices.of((0, STRING + 4 * PAGE - 1, KERNEL_HALF))
    done = data.register(text, **options)
    if not done.errno:
        name = text.partition(" ")[0]
        scene.registered.append(Registered(data, name, payload, done.index, address, bit))


def _place(scene: Scene, process: Any) -> tuple[int, int, int]:
    """Address, size and bit of an enable word, mostly of one that can be written."""
    choices = scene.choices
    size = choices.of((4, 4, 8))
    bit = choices.of((0, 31, 1, 5, 7, 8, 8 * size - 1))
    match choices.below(8):
        case 0 | 1 if process.words_left > 0:
            word = process.word(size, offset=8 * choices.below(2))
            address = word.address
        case 2 | 3 | 4:
            address = scene.page(process) + choices.of((0, 8, PAGE - size))
        case 5 | 6 if scene.words:
            address = choices.late(scene.words)
        case _:
            address = choices.of((0, 2, PAGE, KERNEL_HALF, (1 << 64) - 4))
            return address, size, bit
    scene.words.append(address)
    return address, size, bit


def _odd_member(scene: Scene, size: int, bit: int, flags: int) -> tuple[int, int, int]:
    choices = scene.choices
    match choices.below(3):
        case 0:
            size = choices.of((0, 1, 2, 3, 5, 12, 16, 255))
        case 1:
            bit = choices.of((32, 63, 64, 65, 128, 255))
        case 2:
            flags = choices.of((4, 8, 0x8000, 5))
    return size, bit, flags


def many(scene: Scene) -> None:
    """Many events of one descriptor, whose arrays grow."""
    data, choices = scene.file(), scene.choices
    number, stem = choices.of(_MANY[: 1 + choices.below(len(_MANY))]), scene.name()
    page = scene.page(data.process)
    for n in range(number):
        name = f"{stem}{n}"
        # One word is watched: each costs as much as a call.
        word = {"word": scene.watched(data.process, page, 4), "enable_addr": page + 4 * n}
        done = data.register(f"{name} u32 a", **(word if scene.remote else {}))
        if done.errno:
            return
        if n in (0, number - 1):
            one = Registered(data, name, b"\1\0\0\0", done.index, page + 4 * n, 0)
            scene.registered.append(one)


def write(scene: Scene) -> None:
    """A write of an event, mostly of a payload that fits."""
    choices, found = scene.choices, scene.registration()
    if found is None:
        data, index, payload = scene.file(), 0, b""
    else:
        data, index, payload = found.data, found.index, found.payload
    if choices.rarely(12):
        index = choices.of((-1, index + 1, 1 << 30, 0))
    match choices.below(10):
        case 5:
            payload = payload[: choices.below(len(payload) + 1)]
        case 6:
            payload += bytes(choices.of((1, 3, 100, 4050, 5000)))
        case 7 | 8 if payload:
            # Mostly one of the first bytes, which are locations in many payloads.
            at = choices.below(len(payload[: choices.of((8, 2, 4, 100))]))
            byte = choices.of((0, 1, 2, 3, 4, 16, 127, 128, 255))
            payload = payload[:at] + bytes([byte]) + payload[at + 1 :]
        case 9:
            payload = payload[:-1] + choices.of((b"x", b"\0", b"\0x"))
    record = struct.pack("<i", index if index < 1 << 31 else -1) + payload
    match choices.below(16):
        case 12 if found and not scene.submitted and not is_task(data.process):
            # Which worker of io_uring writes a second one is open.
            scene.submitted = True
            data.submit(record)
        case 13:
            cut = choices.below(len(record) + 1)
            data.writev([record[:cut], record[cut:]])
        case 14:
            data.pwrite(record, choices.of((0, 1, 1 << 40)))
        case 11:
            page = scene.page(data.process)
            data.write_at(choices.of((page, page + PAGE - 4, 0, KERNEL_HALF)), len(record))
        case 15:
            data.write(record[: choices.below(5)])
        case _:
            data.write(record)


def unregister(scene: Scene) -> None:
    """DIAG_IOCSUNREG, mostly of a bit that the process has registered."""
    if not scene.remote:
        return
    choices, process = scene.choices, scene.process()
    enablers = scene.enablers(process)
    address, bit = choices.late(enablers) if enablers else (0, 0)
    found = scene.registration()
    if found is not None and (not enablers or choices.rarely(8)):
        process, address, bit = found.data.process, found.address, found.bit
    if choices.rarely(10):
        address = choices.of((address, address + 4, *scene.words, 0, 2, KERNEL_HALF))
        bit = choices.of((bit, bit + 1, bit + 32, 31, 63, 64))
    options: dict[str, Any] = {}
    if choices.rarely(24):
        options["struct_size"] = choices.of((0, 8, 15, 17, 24, PAGE, PAGE + 1))
        options["tail"] = choices.of((b"", b"\0" * 8, b"\1"))
    if choices.rarely(32):
        options[choices.of(("reserved", "reserved2"))] = 1
    scene.file(process).unregister(address, bit & 255, **options)
    scene.gone.append((address, bit & 255))


def delete(scene: Scene) -> None:
    """DIAG_IOCSDEL, mostly of an event that exists."""
    found = [each.name for each in scene.events] or [scene.name()]
    name = scene.choices.late(found)
    odd = (name + " u32 a", "", name + "z", name[:-1], scene.ue.name("a"))
    scene.file().delete(scene.choices.of(odd) if scene.choices.rarely(8) else name)


def open_data(scene: Scene) -> None:
    """A descriptor of its own."""
    scene.open(scene.choices.of((os.O_RDWR, os.O_RDWR, os.O_WRONLY, os.O_RDONLY)))


def close(scene: Scene) -> None:
    """close(2), seldom with a use of the closed descriptor."""
    data = scene.file()
    data.close()
    if scene.choices.rarely(8):
        data.write(bytes(8))


def dup(scene: Scene) -> None:
    """dup(2)."""
    data = scene.file()
    copy = data.dup()
    scene.files.append(copy)
    scene.registered += [
        Registered(copy, one.name, one.payload, one.index, one.address, one.bit)
        for one in scene.registered
        if (one.data.process.actor, one.data.slot) == (data.process.actor, data.slot)
    ]


def command(scene: Scene) -> None:
    """A line of dynamic_events."""
    choices = scene.choices
    text, _ = definition(scene, scene.name())
    name = text.partition(" ")[0]
    line = choices.of(
        (
            f"u:{text}",
            f"-:{name}",
            f"-:{text}",
            f"!u:{name}",
            f"u:{SYSTEM}/{text}",
            f"-:{SYSTEM}/{name}",
            f"u {text}",
            f"-u:{name}",
            f"u:{name} {choices.of(ODD_FIELDS)}",
        )
    )
    scene.ue.tracefs.command(f"{line}\n")


def hostile(scene: Scene) -> None:
    """An ioctl(2) with an argument of no use."""
    choices = scene.choices
    request = choices.of(
        (uapi.DIAG_IOCSREG, uapi.DIAG_IOCSDEL, uapi.DIAG_IOCSUNREG, 0, uapi.DIAG_IOCSREG ^ 3)
    )
    scene.file().ioctl(request, choices.of((0, STRUCT, STRING + 4 * PAGE - 2, KERNEL_HALF, 1)))
