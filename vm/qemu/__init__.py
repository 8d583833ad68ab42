"""QEMU: command line, process, monitor, console and the guest's root."""
