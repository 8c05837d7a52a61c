"""Communication libraries as data: what each can run, by what rule it chooses, what it costs.

In reading order: ``model`` (a library as a value and as the keys of its file, with the constants of
a rule of choice made of estimated times, and algorithms that a program adds), ``checks`` (what
holds for every library), ``file`` (YAML), ``registry`` (libraries by name).
"""
