"""Redistributions of arrays on ranks: which blocks, in which groups, moved how, and the check.

In reading order: ``blocks`` (where a rank's block lies), ``rank_steps`` (the steps as one rank
sees them), ``groups`` and ``moves`` (carried out on tensors).
"""
