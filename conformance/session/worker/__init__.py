"""A worker process: its guest, its cases, and who is to blame."""
