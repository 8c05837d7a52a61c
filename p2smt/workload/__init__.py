"""Training workloads: a model's layers and a strategy become requests, times and memory."""
