"""`p2smt solve`: on a regular cluster, and on the hosts of an allocation."""
