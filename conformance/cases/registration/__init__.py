"""Cases about DIAG_IOCSREG."""
