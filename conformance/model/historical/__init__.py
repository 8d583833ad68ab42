"""Rules of rfc-v1, which was never merged."""
