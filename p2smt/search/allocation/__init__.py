"""Where the nodes of an allocation go: the parallelism matrix inside, the order of hosts outside.

In reading order: ``grids`` (a grid of node cells for each matrix inside), ``orders`` (orders that
are known beforehand), ``solve`` (the search).
"""
