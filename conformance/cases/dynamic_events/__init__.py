"""Cases about the file dynamic_events."""
