"""Fabrics that other tools describe: msccl-tools' topologies, `nvidia-smi topo -m`."""
