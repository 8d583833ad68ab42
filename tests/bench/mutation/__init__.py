"""Wrong kernels made by machine: all mutants of trace_events_user.c in one image."""
