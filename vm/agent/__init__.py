"""The host's half of the agent: channel, encoding, processes."""
