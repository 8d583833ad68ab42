"""Texts that the kernel parses and prints."""
