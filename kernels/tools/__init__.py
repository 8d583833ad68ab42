"""Child processes, locks, git, ccache, and the toolchain."""
