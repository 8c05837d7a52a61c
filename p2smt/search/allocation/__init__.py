"""Where the nodes of an allocation go: the parallelism matrix inside, the order of hosts outside.

In reading order: ``cell_grids`` (a grid of node cells for each matrix inside), ``terms`` (what each
request puts on uplinks, and its price), ``grid_question`` (that as integers), ``solve_grid`` (one
grid in two stages), ``local_search`` (orders that are known beforehand, and better ones near them),
``host_search`` (one search over all grids, its programs, and the check), ``solve_on_hosts`` (the
public function, which also settles ties where nobody stated a bandwidth, and looks around an
answer: other bandwidths, and orders near the best).
"""
