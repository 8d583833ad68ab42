"""Memory layout of every process of a program.

Structures, strings and buffers at SCRATCH, enable words at WORDS, further mappings of a case from
FREE on.  Addresses and lengths in bytes.
"""

from __future__ import annotations

import mmap

PAGE = 4096
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
# Python has no name for it.
PROT_NONE = 0
# An address of the direct map, which no process can access.
KERNEL_HALF = 0xFFFF_8880_0000_0000

SCRATCH = 0x2000_0000_0000
SCRATCH_LENGTH = 64 * PAGE
STRUCT = SCRATCH
STRING = SCRATCH + 2 * PAGE
ATTR = SCRATCH + 4 * PAGE
BUFFER = SCRATCH + 16 * PAGE

WORDS = 0x2000_1000_0000
# Distance of words in bytes; the guard pattern around them must never change.
WORD_SPACING = 64
GUARD = 0xA5
GUARD_LENGTH = 8

FREE = 0x2000_2000_0000


def is_guarded(address: int) -> bool:
    """Whether an address is that of an enable word, or of the guards around it."""
    return WORDS <= address < WORDS + PAGE
