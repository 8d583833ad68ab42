"""Cases about BPF programs, maps and the verifier that serve user_events."""
