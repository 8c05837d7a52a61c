"""Schedules of chunks over a fabric, lowered to thread blocks and messages.

In reading order: ``demand`` (what the collective wants of every chunk), ``needed`` (messages that
some result needs), ``keeping`` (where each rank keeps what it was sent, and which sums it makes),
``numbering`` (chunks that travel together become neighbours), ``messages`` (neighbours become one
message), ``emission`` (everything in an order that runs one by one), ``channels`` (what keeps
blocks within a runtime's limits), ``lowered`` (the whole).
"""
