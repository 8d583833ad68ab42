"""Kernel reports that fail no case, as validated TOML files with an expiry date."""
