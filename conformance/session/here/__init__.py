"""Judge the kernel that uevt itself runs on, and leave the system as it was."""
