"""The best strategy and placement for a model on a cluster, proved in the model of cost."""
