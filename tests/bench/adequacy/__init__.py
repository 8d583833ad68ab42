"""Whether a kernel tests each rule of the model: mutants, judged by recorded answers."""
