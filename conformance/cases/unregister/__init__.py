"""Cases about DIAG_IOCSUNREG."""
