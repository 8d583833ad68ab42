"""Cases about races between two processors."""
