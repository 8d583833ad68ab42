"""Where things lie in the memory of every process of a program.

Structures, strings and buffers at SCRATCH, enable words at WORDS, and what a case asks for
from FREE on.  Addresses and lengths in bytes.
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
# Words lie this many bytes apart, with a pattern around them that must never change.
WORD_SPACING = 64
GUARD = 0xA5
GUARD_LENGTH = 8

FREE = 0x2000_2000_0000
