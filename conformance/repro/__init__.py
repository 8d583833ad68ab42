"""A recorded program as a stand-alone program: C, or a shell script.

``calls`` has the C expression of each operation, ``statements`` the steps of a program and their
checks, ``source`` the whole file.  ``c/`` holds the functions that programs use.
"""
