"""The command `uevt bisect`."""
