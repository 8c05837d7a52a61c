"""Redistributions of arrays on ranks: which blocks, in which groups, moved how, and the check.

In reading order: ``block_values`` (what a rank's block holds, and where it lies), ``rank_steps``
(the steps as one rank sees them), ``moves`` (carried out on tensors), ``array_rank`` (one rank,
checked), ``runtime.numpy_reference`` (all ranks in one process).
"""
