"""Rules of trace_events_user.c."""
