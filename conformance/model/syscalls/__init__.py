"""Rules of system calls, and their dispatch."""
