"""Cases about tracefs control files that select events."""
