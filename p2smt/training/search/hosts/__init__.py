"""The best strategy on the hosts that a job got: how many of them, which, and in which order.

``ideal`` (what no order can beat), ``host_orders`` (what an order takes), ``boxes`` (where no order
is fast enough), ``search`` and its ``hosted_answer``.
"""
