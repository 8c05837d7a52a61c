"""Forests that carry as much as a fabric can: the rate first, then trees that reach it.

``network`` makes a graph of ranks and switches, ``rate`` finds its narrowest cut, ``cheapest`` a
cheapest tree, ``packing`` weights for such trees, ``throughput`` asks them in turn and
``pieces`` makes a schedule.  What proves an answer is ``synthesis.certificate.forest``.
"""
