"""The journal of a search: what it is (``record``), its lines (``file_model``, ``file``), writing
them and going on from them (``journal``), and what verifies them (``verify``).
"""
