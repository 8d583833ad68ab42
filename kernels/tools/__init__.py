"""Host tools: child processes, locks, git, ccache."""
