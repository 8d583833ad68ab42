"""The user's kernel trees: snapshots, copies in the store, git bisect."""
