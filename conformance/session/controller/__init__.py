"""The controlling process: results, outputs and resuming."""
