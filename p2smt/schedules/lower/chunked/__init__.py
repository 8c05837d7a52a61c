"""Schedules of chunks over a fabric, lowered to thread blocks and messages.

In reading order: ``demand`` (what the collective wants of every chunk), ``needed`` (messages that
some result needs), ``keeping`` (where each rank keeps what it was sent, and which sums it makes),
``placed`` (every message and local move with its places), ``numbering`` (chunks that travel
together become neighbours), ``layout`` (places as spans of buffers), ``runs`` (neighbours become
one message), ``channels`` (what keeps blocks within a runtime's limits), ``lowered`` (the whole, in
an order that runs one by one).
"""
