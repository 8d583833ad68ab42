"""Rules of the tracing core: instances, triggers, probes, histograms."""
