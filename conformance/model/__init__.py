"""The reference model: what a kernel of a given profile may answer to an operation.

Pure and deterministic.  It consumes the same operations as the guest, bad pointers and
unmapped pages included, and answers with an envelope where the ABI leaves freedom: work
the kernel does later (auto-delete, reference drops after an RCU grace period, fix-ups of
pages that are not resident) is a *pending transition*, and every state reachable through
pending transitions is allowed until an observation rules it out.
"""
