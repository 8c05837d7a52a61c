"""The parts of a synthesis: question, answer, and a module for each thing that others are asked.

``proved`` bounds; ``rungs`` groups of symmetries; ``copied`` and ``summed`` ask solvers;
``lowering`` makes a schedule of what they answer; ``climb`` tries groups and classes in turn.
"""
