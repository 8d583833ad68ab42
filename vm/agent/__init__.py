"""The host's half of the agent: channels, encoding of calls, actors."""
