"""Cases about event triggers and eprobes."""
