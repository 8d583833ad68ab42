"""Cases about the lifetime of events, files and tasks."""
