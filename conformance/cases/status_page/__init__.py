"""Cases about the status page that user_events had before 6.4."""
