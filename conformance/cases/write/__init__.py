"""Cases about writing events."""
