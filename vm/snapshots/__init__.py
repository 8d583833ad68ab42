"""Snapshots of booted guests: storage, policy, and what a guest needs after restoring one."""

#: How a guest started.
BOOTED, RESTORED = "booted", "restored"
