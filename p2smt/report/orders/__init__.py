"""Rank orders and the hosts of ranks: as plain data (``order_data``), side by side for people
(``order_tables``), and an answer on named hosts (``host_tables``)."""
