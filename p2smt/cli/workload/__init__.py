"""`estimate` and `plan`: a model on a cluster."""
