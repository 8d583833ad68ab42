"""A worker process: guest, cases, and blame for failures."""
