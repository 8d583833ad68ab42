"""Cases about the file user_events_status."""
