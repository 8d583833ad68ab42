"""Is each rule of the model tested by a kernel?  Mutants of the model, judged by recorded answers."""
