"""A training iteration counted step by step: every head, tensor, layer, chunk and micro-batch.

Knows no formula.  Sizes are those of small models; a device is the first of its tensor-parallel and
context-parallel groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

Call = tuple[str, tuple[str, ...], int]
"""Collective, axes, bytes."""


@dataclass
class Tally:
    """What one device of a stage does in an iteration."""

    parameters: int = 0
    product_flops: int = 0
    score_flops: Fraction = Fraction(0)
    calls: Counter[Call] = field(default_factory=Counter)


@dataclass(frozen=True)
class Oracle:
    """Counts of one training run; gradients have ``gradient_bytes`` an element."""

    model: Transformer
    batch: Batch
    strategy: Strategy
    gradient_bytes: int

    def positions(self) -> list[int]:
        """Positions of a sequence on the device: with cp the first and the last of 2 cp parts."""
        everything = list(range(self.batch.tokens))
        if self.strategy.cp == 1:
            return everything
        part = self.batch.tokens // (2 * self.strategy.cp)
        return everything[:part] + everything[-part:]

    @property
    def tokens(self) -> int:
        """Of a micro-batch on the device."""
        return len(self.positions()) * self.strategy.micro_batch

    def query_heads(self) -> list[int]:
        """Those of the device."""
        return list(range(self.model.heads // self.strategy.tp))

    def key_heads(self) -> set[int]:
        """Those that its query heads need."""
        shared = self.model.heads // self.model.kv_heads
        return {head // shared for head in self.query_heads()}

    def matrices(self) -> list[tuple[int, int]]:
        """Rows and columns of a layer's matrices on the device."""
        model, ffn = self.model, self.model.ffn // self.strategy.tp
        queries = len(self.query_heads()) * model.head_size
        keys = len(self.key_heads()) * model.head_size
        attention = [(model.hidden, queries), (model.hidden, keys), (model.hidden, keys)]
        inputs = [(model.hidden, ffn)] * (2 if model.gated else 1)
        return [*attention, (queries, model.hidden), *inputs, (ffn, model.hidden)]

    def end_matrix(self) -> tuple[int, int]:
        """The embedding, or the logits."""
        return (self.model.hidden, self.model.vocab // self.strategy.tp)

    def layer_flops(self) -> int:
        """Matrix products of a layer, forward."""
        return sum(2 * self.tokens * rows * columns for rows, columns in self.matrices())

    def layer_score_flops(self) -> Fraction:
        """Scores, and scores times values, of a layer, forward.

        Fused attention computes those of earlier tokens, and half of a token's own.
        """
        met = Fraction(0)
        for position in self.positions():
            met += position + Fraction(1, 2) if self.strategy.flash else self.batch.tokens
        products = 2 * len(self.query_heads()) * self.strategy.micro_batch
        return products * met * 2 * self.model.head_size

    def saved(self) -> Iterator[tuple[str, Fraction]]:
        """Tensors that a layer keeps for its backward pass, with bytes on the device."""
        model, strategy = self.model, self.strategy
        spread = strategy.tp if strategy.sequence_parallel else 1
        whole = Fraction(self.tokens * model.hidden, spread)
        queries = len(self.query_heads()) * model.head_size * self.tokens
        keys = len(self.key_heads()) * model.head_size * self.tokens
        ffn = Fraction(model.ffn * self.tokens, strategy.tp)
        scores = len(self.query_heads()) * self.tokens * self.batch.tokens
        for name in ("attention norm", "attention input", "mlp norm", "mlp input"):
            yield name, 2 * whole
        yield "queries", Fraction(2 * queries)
        yield "keys", Fraction(2 * keys)
        yield "values", Fraction(2 * keys)
        yield "attention output", Fraction(2 * queries)
        for _ in range(2 if model.gated else 1):
            yield "activation input", 2 * ffn
        yield "activation output", 2 * ffn
        if strategy.dropout:
            yield "attention dropout mask", whole
            yield "mlp dropout mask", whole
        if strategy.flash:
            yield "score row sums", Fraction(4 * len(self.query_heads()) * self.tokens)
            return
        yield "score softmax", Fraction(2 * scores)
        if strategy.dropout:
            yield "score dropout", Fraction(2 * scores)
            yield "score dropout mask", Fraction(scores)

    def again(self, number: int) -> bool:
        """Whether the layer of that number in its chunk is computed again whole."""
        most = self.strategy.recompute_layers or self.model.layers
        return self.strategy.recompute is Recompute.FULL and number < most

    def kept(self, number: int = 0) -> Fraction:
        """Bytes of a layer's tensors that stay until its backward pass."""
        tensors = dict(self.saved())
        if self.again(number):
            return tensors["attention norm"]  # the input of the layer
        inputs = 1 + self.model.gated  # yielded under one name
        found = sum(tensors.values()) + (inputs - 1) * tensors["activation input"]
        if self.strategy.recompute is Recompute.SELECTIVE:
            found -= sum(size for name, size in tensors.items() if name.startswith("score"))
        return found

    # requests

    def forward(self) -> Iterator[Call]:
        """Collectives of a layer, forward."""
        yield from self.core()
        for _ in ("attention", "mlp"):
            yield from self.enter()
            yield from self.leave()

    def core(self) -> Iterator[Call]:
        """Those of attention itself: keys and values of all tokens."""
        yield ("all-gather", ("cp",), self.all_keys())

    def all_keys(self) -> int:
        """Bytes of the keys and the values of a micro-batch's sequences for the device's heads."""
        width = len(self.key_heads()) * self.model.head_size
        return 2 * 2 * self.strategy.micro_batch * self.batch.tokens * width

    def enter(self) -> Iterator[Call]:
        """Before a matrix that is split by columns."""
        if self.strategy.sequence_parallel:
            yield ("all-gather", ("tp",), self.hidden())

    def leave(self) -> Iterator[Call]:
        """After a matrix that is split by rows."""
        kind = "reduce-scatter" if self.strategy.sequence_parallel else "all-reduce"
        yield (kind, ("tp",), self.hidden())

    def hidden(self) -> int:
        """Bytes of the hidden state of a micro-batch."""
        return 2 * self.tokens * self.model.hidden

    def backward(self, number: int) -> Iterator[Call]:
        """Collectives of a layer, backward, with what is computed again."""
        if self.again(number):
            yield from self.forward()
        if self.strategy.recompute is Recompute.SELECTIVE:
            yield from self.core()
        yield ("all-gather", ("cp",), self.all_keys())
        yield ("all-gather", ("cp",), self.all_keys())  # as long as the gradients' way back
        for _ in ("mlp", "attention"):
            if self.strategy.sequence_parallel:
                yield from self.enter()  # gradient of what leave() gave
                yield from self.enter()  # the input again, for the gradient of the matrix
            yield from self.leave()  # gradient of what enter() took

    def tallies(self) -> list[Tally]:
        """What a device of each stage does."""
        stages = [Tally() for _ in range(self.strategy.pp)]
        for chunk, layers in enumerate(self.chunks()):
            tally = stages[chunk % self.strategy.pp]
            for number in range(layers):
                self._layer(tally, number)
        self._first(stages[0])
        self._last(stages[-1])
        for tally in stages:
            self._sends(tally)
        most = max(tally.parameters for tally in stages)
        for tally in stages:
            self._reduce(tally, most)
            tally.calls = Counter({c: n for c, n in tally.calls.items() if self._runs(c)})
        return stages

    def chunks(self) -> list[int]:
        """Layers of each chunk: handed out one by one, ends being layers if need be."""
        count = self.strategy.pp * self.strategy.vpp
        if self.strategy.split:
            return list(self.strategy.split)
        ends = 0 if self.model.layers % count == 0 else 1
        items = ["end"] * ends + ["layer"] * self.model.layers + ["end"] * ends
        each = len(items) // count
        assert each * count == len(items)
        return [items[n * each : (n + 1) * each].count("layer") for n in range(count)]

    def micro_batches(self) -> int:
        """Through a pipeline in an iteration."""
        return self.batch.sequences // self.strategy.dp // self.strategy.micro_batch

    def _runs(self, call: Call) -> bool:
        copies = self.strategy.dp_replicate
        sizes = {"dp": self.strategy.dp // copies, "dpr": copies}
        return any((sizes.get(axis) or getattr(self.strategy, axis)) > 1 for axis in call[1])

    def _layer(self, tally: Tally, number: int) -> None:
        elements = sum(rows * columns for rows, columns in self.matrices())
        tally.parameters += elements
        for _ in range(self.micro_batches()):
            tally.product_flops += self.layer_flops()
            tally.score_flops += self.layer_score_flops()
            tally.calls.update([*self.forward(), *self.backward(number)])
            for _ in ("forward", "backward"):
                self._fetch(tally, elements)
            self._add_up(tally, elements)

    def _first(self, tally: Tally) -> None:
        self._end(tally, own=True)
        for _ in range(self.micro_batches()):
            tally.calls.update(self.leave())
            if self.strategy.sequence_parallel:
                tally.calls.update(self.enter())

    def _last(self, tally: Tally) -> None:
        self._end(tally, own=not (self.model.tied and self.strategy.pp == 1))
        rows, columns = self.end_matrix()
        for _ in range(self.micro_batches()):
            tally.product_flops += 2 * self.tokens * rows * columns
            tally.calls.update([*self.enter(), *self.enter(), *self.leave()])

    def _end(self, tally: Tally, own: bool) -> None:
        rows, columns = self.end_matrix()
        if own:
            tally.parameters += rows * columns
        for _ in range(self.micro_batches() if own else 0):
            self._fetch(tally, rows * columns)
            self._add_up(tally, rows * columns)

    def _fetch(self, tally: Tally, elements: int) -> None:
        """Parameters before they are used, where a device has but a shard of them."""
        if self.strategy.zero == 3:
            tally.calls[("all-gather", ("dp", "cp"), 2 * elements)] += 1

    def _add_up(self, tally: Tally, elements: int) -> None:
        """Gradients of a micro-batch: to whole ones without traffic, to shards with it."""
        if self.strategy.zero >= 2:
            gradient = self.gradient_bytes * elements
            tally.calls[("reduce-scatter", ("dp", "cp"), gradient)] += 1

    def _sends(self, tally: Tally) -> None:
        for _ in range(self.micro_batches()):
            for _ in range(self.strategy.vpp):
                for _ in ("activations", "gradients"):
                    tally.calls[("send", ("pp",), self.hidden() // self.strategy.tp)] += 1
        if self.model.tied:
            rows, columns = self.end_matrix()
            tally.calls[("send", ("pp",), self.gradient_bytes * rows * columns)] += 1

    def _reduce(self, tally: Tally, most: int) -> None:
        """Whole gradients of the stage with most of them, and new parameters."""
        gradients = self.gradient_bytes * most
        if self.strategy.zero == 0:
            tally.calls[("all-reduce", ("dp", "cp"), gradients)] += 1
        elif self.strategy.dp_replicate > 1:  # each shard with its copies
            shards = self.strategy.dp * self.strategy.cp // self.strategy.dp_replicate
            tally.calls[("all-reduce", ("dpr",), -(-gradients // shards))] += 1
        if self.strategy.zero == 1:
            tally.calls[("reduce-scatter", ("dp", "cp"), gradients)] += 1
        if self.strategy.zero in (1, 2):
            tally.calls[("all-gather", ("dp", "cp"), 2 * most)] += 1
