"""Rules of the files in tracefs."""
