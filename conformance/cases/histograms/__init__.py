"""Cases about hist triggers on user events."""
