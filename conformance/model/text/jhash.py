"""jhash(), which determines the order of lines in user_events_status.

Source: include/linux/jhash.h (Bob Jenkins' lookup3), include/linux/hash.h.
"""

from __future__ import annotations

import struct

from conformance.abi.profile import Generation, Profile

_MASK = 0xFFFFFFFF
_WORDS = struct.Struct("<III")
_INITVAL = 0xDEADBEEF
_GOLDEN_RATIO_32 = 0x61C88647
# DECLARE_HASHTABLE(register_table, 8) of struct user_event_group: 256 buckets since 6.1.
_BUCKET_BITS = 8
_BYTE_STATUS_BUCKET_BITS = 4


def _rol(word: int, shift: int) -> int:
    return (word << shift | word >> (32 - shift)) & _MASK


def jhash(key: bytes, initval: int = 0) -> int:
    """jhash(key, length, initval): 32 bits."""
    a = b = c = (_INITVAL + len(key) + initval) & _MASK
    while len(key) > _WORDS.size:
        a, b, c = _mix(*_added(a, b, c, key))
        key = key[_WORDS.size :]
    return _final(*_added(a, b, c, key.ljust(_WORDS.size, b"\0"))) if key else c


def _added(a: int, b: int, c: int, key: bytes) -> tuple[int, int, int]:
    x, y, z = _WORDS.unpack_from(key)
    return a + x & _MASK, b + y & _MASK, c + z & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for shift_a, shift_b, shift_c in ((4, 6, 8), (16, 19, 4)):
        a = (a - c & _MASK) ^ _rol(c, shift_a)
        c = c + b & _MASK
        b = (b - a & _MASK) ^ _rol(a, shift_b)
        a = a + c & _MASK
        c = (c - b & _MASK) ^ _rol(b, shift_c)
        b = b + a & _MASK
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    for shift in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rol(b, shift)) & _MASK
        a, b, c = b, c, a
    return b


def bucket_bits(profile: Profile) -> int:
    """The number of bits of a bucket index."""
    if profile.generation is Generation.BYTE_STATUS:
        return _BYTE_STATUS_BUCKET_BITS
    return _BUCKET_BITS


def bucket(name: bytes, bits: int) -> int:
    """The bucket of a registered name: hash_min() of its jhash."""
    return (jhash(name) * _GOLDEN_RATIO_32 & _MASK) >> (32 - bits)
