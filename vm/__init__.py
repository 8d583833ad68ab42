"""Virtual machines: a proven accelerator, a guest that answers, a console that is evidence.

The room knows QEMU, virtme-ng and generic system calls.  It knows nothing of what is tested in
the guest.  Import from the modules; this file stays empty because the guest imports it too.
"""
