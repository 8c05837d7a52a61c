"""Transfers between meshes on ranks.

``transfer_job``: a plan as work, and what it needs; ``rank_shares``: what a rank packs, sends and
unpacks in each bucket; ``transfer_rank``: one rank, in torch; ``numpy_transfer``: in one process.
"""
