"""RankedTable times that nccl-tests prints."""
