"""The suite as a kselftest collection that needs nothing of the system but a kernel and a shell."""
