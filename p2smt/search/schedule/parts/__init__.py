"""Schedules of one size as a space, cut into cubes by yes/no decisions: any member, or none.

``decisions`` says what is decided and in which order, ``texts`` writes members, ``space`` closes
cubes, ``search`` runs it and makes the same answer of it as a search in one piece.
"""
