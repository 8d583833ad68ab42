"""The running kernel as a guest: the agent as processes of this system, /dev/kmsg as console."""
