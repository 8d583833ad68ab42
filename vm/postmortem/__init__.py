"""Post-mortem: find the cause of a failed call, boot or hang."""
