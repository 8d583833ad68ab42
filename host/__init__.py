"""The host machine: deadlines, files, progress, temporary directories, text."""
