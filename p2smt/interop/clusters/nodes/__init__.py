"""What is inside a node, as tools print it.

``facts`` holds what files tell: GPUs, network cards, what joins and what lies between them.
``nccl_xml`` (with ``xml_tree``), ``topo_matrix`` and ``rocm_matrix`` read it, ``rank_headers`` what
nccl-tests says of its ranks.  ``models`` knows GPUs by name.  ``reduce`` makes levels of the facts:
``linked`` those of NVLink and xGMI, ``buses`` those of PCIe, ``cards`` the link of the node.
``likeness`` names presets that look alike, ``formats`` has the table, and ``machine`` asks the
machine that it runs on.
"""
