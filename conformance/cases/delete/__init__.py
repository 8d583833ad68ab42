"""Cases about DIAG_IOCSDEL."""
