"""Cases about trace, trace_pipe and format files."""
