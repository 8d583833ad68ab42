"""Cases about the enable word."""
