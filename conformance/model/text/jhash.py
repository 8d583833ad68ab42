"""jhash(), which determines the order of lines in user_events_status.

Source: include/linux/jhash.h (Bob Jenkins' lookup3), include/linux/hash.h.
"""

from __future__ import annotations

from conformance.abi.profile import Generation, Profile

_MASK = 0xFFFFFFFF
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
    while len(key) > 12:
        a = (a + int.from_bytes(key[0:4], "little")) & _MASK
        b = (b + int.from_bytes(key[4:8], "little")) & _MASK
        c = (c + int.from_bytes(key[8:12], "little")) & _MASK
        a, b, c = _mix(a, b, c)
        key = key[12:]
    if key:
        tail = key.ljust(12, b"\0")
        a = (a + int.from_bytes(tail[0:4], "little")) & _MASK
        b = (b + int.from_bytes(tail[4:8], "little")) & _MASK
        c = (c + int.from_bytes(tail[8:12], "little")) & _MASK
        c = _final(a, b, c)
    return c


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
    c = ((c ^ b) - _rol(b, 14)) & _MASK
    a = ((a ^ c) - _rol(c, 11)) & _MASK
    b = ((b ^ a) - _rol(a, 25)) & _MASK
    c = ((c ^ b) - _rol(b, 16)) & _MASK
    a = ((a ^ c) - _rol(c, 4)) & _MASK
    b = ((b ^ a) - _rol(a, 14)) & _MASK
    return ((c ^ b) - _rol(b, 24)) & _MASK


def bucket_bits(profile: Profile) -> int:
    """The number of bits of a bucket index."""
    if profile.generation is Generation.BYTE_STATUS:
        return _BYTE_STATUS_BUCKET_BITS
    return _BUCKET_BITS


def bucket(name: bytes, bits: int) -> int:
    """The bucket of a registered name: hash_min() of its jhash."""
    return (jhash(name) * _GOLDEN_RATIO_32 & _MASK) >> (32 - bits)
