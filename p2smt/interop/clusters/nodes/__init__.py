"""What is inside a node, as tools print it.

``facts`` holds what files tell: GPUs, network cards, what joins and what lies between them, also
``rocm-smi``'s matrix.  ``nccl_xml`` and ``topo_matrix`` read others, and the latter asks the
machine that it runs on; ``rank_headers`` reads what nccl-tests says of its ranks.  ``gpu_models``
knows GPUs by name.  ``reduce`` makes levels of the facts: those of NVLink and xGMI, those of PCIe,
and the link of the node.
"""
