"""MSCCL++ JSON execution plans."""
