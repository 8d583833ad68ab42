"""Cases about capabilities, file modes, mounts and lockdown."""
