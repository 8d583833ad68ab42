"""What several files of cases write: a record of the first event of a file."""

from __future__ import annotations

INDEX = b"\0\0\0\0"
# With a payload of 0x41, as of an event `u32 a`.
RECORD = INDEX + b"\x41\0\0\0"
