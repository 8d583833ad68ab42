"""Encoding of operations as requests to the agent."""
