"""Cases about dated switches: behaviour that changed in a known release."""
