"""A worker process: its guest, its cases, and whom a failure is blamed on."""
