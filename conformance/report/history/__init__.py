"""Many runs in a directory: which there are, what they say in brief, and since when."""
