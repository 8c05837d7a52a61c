"""Files that tell of clusters: which hosts are where, and what is inside them.

In reading order: ``facts``, what a file tells; the readers of ``slurm``, ``kubernetes`` and
``physical_hosts`` (with ``json_texts`` and ``paths``), and those of ``nodes`` and ``astra_sim``;
``tree``, which makes a tree of what holds hosts, ``uplinks``, what is said of bandwidths, and
``levels``, the hull of a tree as a topology; ``racks``, blocks of trays as one; ``combine``, which
puts sources together, and ``read``, which has the table of formats.
"""
