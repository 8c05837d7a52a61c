"""Search of the best strategy, placement and programs of a training run."""
