"""Communication libraries as data: what each can run, what it chooses, and what that costs.

In reading order: ``model`` (a library as a value), ``formula`` (a rule of choice made of estimated
times), ``graphs`` (the channels that a library finds), ``estimate`` (the formula's times),
``choice`` (the rule applied to groups), ``shape`` (of groups), ``rules`` (what an algorithm loads),
``ways`` (prices); ``file_model`` and ``file`` (YAML), ``checks`` (what holds for every library),
``outside`` and ``registry`` (algorithms and libraries of a program's own); ``accuracy`` (how well
predictions held on the systems that were measured).
"""
