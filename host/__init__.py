"""The host: deadlines, errors, files, packages, architecture, progress, text."""
