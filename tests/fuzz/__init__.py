"""Hostile input to every parser of data from a guest, a patch or a file."""
