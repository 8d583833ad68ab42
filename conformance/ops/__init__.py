"""What a client can do: operations at system-call level, actors, and views on text.

An operation says which actor (a process) performs which system call with which numbers
and bytes.  Model and guest execute the same operations; nothing here knows either.
"""
