"""Transfers between meshes on ranks.

``transfer_job``: a plan as work, and what it needs; ``transfer_rank``: what one rank packs, sends
and unpacks in each bucket, in torch; ``runtime.numpy_reference``: all ranks in one process.
"""
