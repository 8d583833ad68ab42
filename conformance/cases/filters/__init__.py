"""Cases about filters on user events."""
