"""QEMU: command line, process, QMP, console and root archive."""
