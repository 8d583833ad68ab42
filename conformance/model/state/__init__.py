"""The state of the modelled kernel."""
