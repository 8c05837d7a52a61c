"""Whole jobs of a training plan: what is submitted to Slurm, or applied to Kubernetes.

:mod:`~p2smt.interop.jobs.command` has what every rank runs, the others what starts it.
"""
