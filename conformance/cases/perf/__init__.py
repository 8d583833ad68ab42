"""Cases about perf events on user events."""
