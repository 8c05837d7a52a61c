"""What Slurm says of a network: ``lines`` (words KEY=VALUE), ``conf`` (topology.conf),
``topology_yaml`` (topology.yaml), ``scontrol`` (what it prints).
"""
