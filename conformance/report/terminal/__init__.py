"""Terminal output of a run: progress, and the summary at its end."""
