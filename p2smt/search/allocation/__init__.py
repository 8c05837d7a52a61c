"""Where the nodes of an allocation go: the parallelism matrix inside, the order of hosts outside.

In reading order: ``grids`` (a grid of node cells for each matrix inside), ``orders`` and
``near.known`` (orders that are known beforehand), ``terms`` with ``variants`` (what each request
puts on uplinks, and its price), ``question`` (that as integers), ``check`` (what an answer is and
costs), ``settle`` (one grid in two stages), ``near.climb`` (better orders near a known one),
``near.every`` (all of them, where they are few), ``hunt`` (all grids), ``programs`` (several steps
on the same ranks), ``answer`` (one search), ``solve`` (the public function, which also settles ties
where nobody stated a bandwidth).
"""
