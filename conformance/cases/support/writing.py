"""Data to write: the index of the first event, and a record of it."""

INDEX = b"\0\0\0\0"
# The payload is 0x41 of an event `u32 a`.
RECORD = INDEX + b"\x41\0\0\0"
