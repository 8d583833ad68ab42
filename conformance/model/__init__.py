"""The reference model: what a kernel of a given profile may answer to an operation.

The model is pure and deterministic.  It takes the operations that the guest executes, bad pointers
and unmapped pages included.  Where the ABI leaves freedom, it allows several answers: work that the
kernel defers (auto-delete, reference drops after an RCU grace period, page fix-ups) is a *pending
transition*, and every state that pending transitions lead to is possible until an observation
excludes it.
"""
