"""The order that every interleaving keeps, and the accesses that it leaves open."""
