"""Whatever may come from a guest, a patch's author or a file is read without coming to harm."""
