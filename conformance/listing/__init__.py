"""Listing: a recorded program as a kernel developer would write it down."""
