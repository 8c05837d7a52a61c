"""Measured times that nccl-tests prints."""
