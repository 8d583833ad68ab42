"""The build store."""
