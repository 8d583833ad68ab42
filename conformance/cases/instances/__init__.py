"""Cases about tracefs instances."""
