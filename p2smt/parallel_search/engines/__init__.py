"""Engines that solve many subproblems at a time: processes of this machine, a Dask cluster."""
