"""Boot a kernel in QEMU, perform calls in the guest and explain what goes wrong.

This package knows QEMU, virtme-ng and generic system calls, but nothing about the ABI under test.
Import from the modules: this file stays empty because the guest imports it too.
"""
