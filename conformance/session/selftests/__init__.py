"""Upstream's selftests of user_events: built, run in a guest, and compared with our cases."""
