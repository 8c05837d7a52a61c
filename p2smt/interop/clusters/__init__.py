"""Files that tell of clusters: which hosts are where, and what is inside them.

In reading order: ``facts``, what a file tells; the readers of ``slurm``, ``kubernetes``,
``physical_hosts``, ``astra_sim`` and those of ``nodes``; ``tree``, which makes a tree of what holds
hosts, ``levels``, the hull of a tree as a topology, with what is said of bandwidths; ``combine``,
which puts sources and blocks of trays together, and ``read``, which has the table of formats.
"""
