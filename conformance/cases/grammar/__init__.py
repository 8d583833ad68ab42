"""Cases about the text of an event definition."""
