"""The BPF interpreter and verifier of the model."""
