"""MeasuredTable times that nccl-tests prints."""
