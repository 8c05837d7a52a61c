"""Lowering of synthesized schedules."""
