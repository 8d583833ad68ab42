"""Writes whose BPF context is examined, in the merge window of 5.18."""

# user_bpf_context.data_type.
IN_KERNEL = 0
IN_USER = 1
# Address of write()'s data here, and of writev()'s segments, one after the other.
DATA = 0x2000_0001_0000
INDEX = b"\0\0\0\0"
PAYLOAD = b"\x11\x22\x33\x44\x55\x66\x77\x88"
WRITTEN = INDEX + PAYLOAD
