"""The user's kernel trees: snapshots, worktrees, git bisect."""
