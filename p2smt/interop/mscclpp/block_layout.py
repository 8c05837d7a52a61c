"""Steps of a block laid out as operations, with neither more nor less order.

The kernel's order is that of thread_order.  A step goes where the operations before it order
what must come first, if need be behind a ``nop``; where that would order more than the schedule
does, the step is refused, for what is written must not be right where the schedule is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from p2smt.errors import InputError
from p2smt.interop.mscclpp.operation_shapes import shape_of
from p2smt.interop.mscclpp.simple_steps import predecessors
from p2smt.interop.mscclpp.thread_order import meet_apart
from p2smt.schedules.model import StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from p2smt.interop.mscclpp.counters import Counters
    from p2smt.schedules.model import Step

MAX_LIST = 8
Key: TypeAlias = "tuple[str, int | str]"


@dataclass(slots=True)
class Laid:
    """An operation and the steps that it is made of: its channels, semaphores or transfers."""

    name: str
    kind: str = ""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class BlockLayout:
    """The operations of one block while they are made.

    segment: steps since the last synchronisation, and the thread or lane that does each.
    last: the last step of each thread or lane.  base: what the last synchronisation follows.
    pushed: steps of the proxy so far.  flushed: those that flush themselves, and the flush.
    """

    counters: Counters
    steps: Mapping[StepRef, Step]
    in_place: bool
    done: list[Laid] = field(default_factory=list)
    segment: dict[StepRef, Key] = field(default_factory=dict)
    last: dict[Key, StepRef] = field(default_factory=dict)
    base: tuple[StepRef, ...] = ()
    pushed: list[StepRef] = field(default_factory=list)
    flushed: dict[StepRef, StepRef] = field(default_factory=dict)

    def add_all(self, steps: Iterable[Step]) -> None:
        """Add the steps of the block in order."""
        steps = list(steps)
        self._pair_flushes(steps)
        for step in steps:
            name, kind = self._named(step)
            if name in ("nop", "barrier"):
                self._sync(step, name)
            else:
                self._add(step, name, kind)

    def _named(self, step: Step) -> tuple[str, str]:
        """The operation, and its kind of channel."""
        names = (*step.posts, *step.awaits)
        if step.background:
            return self._proxy_name(step), "port"
        if step.barrier is not None:
            return "barrier", ""
        if step.reads or step.writes:
            return shape_of(step).name, "memory"
        if names and names[0] in self.counters.semaphores:
            return ("sem_release" if step.posts else "sem_acquire"), ""
        if names:
            ends = self.counters.raised if step.posts else self.counters.awaited
            name = "signal" if step.posts else "wait"
            return ("rlx" + name if step.relaxed else name), ends[names[0]].kind
        flushes = any(self.steps[ref].background for ref in predecessors(step))
        return ("flush", "port") if flushes else ("nop", "")

    def _proxy_name(self, step: Step) -> str:
        if not step.writes:
            return "signal"
        name = shape_of(step).name
        if name == "put" and step.posts:
            return "pwsf" if _ref(step) in self.flushed else "pws"
        if name not in ("put", "ppkt") or step.posts:
            raise InputError(f"{step}", f"{name} does not run in the background", "use put")
        return name

    def _pair_flushes(self, steps: list[Step]) -> None:
        """Puts that flush themselves: the flush has the same thread's steps before it."""
        for step in steps:
            for ref in () if step.background else predecessors(step):
                push = self.steps[ref]
                if push.background and push.kind == "pwsf" and ref not in self.flushed:
                    before = [self._own(predecessors(s)) for s in (step, push)]
                    if before[0] == before[1]:
                        self.flushed[ref] = _ref(step)

    def _own(self, refs: Iterable[StepRef]) -> set[StepRef]:
        return {ref for ref in refs if not self.steps[ref].background}

    def _sync(self, step: Step, name: str) -> None:
        """A nop or barrier of the schedule: it must come after the whole segment."""
        self._require(step, [ref for ref in self.segment if not self.steps[ref].background])
        self._require(step, self.base)
        self.done.append(Laid(name, "", [step]))
        self.segment, self.last, self.base = {}, {}, (_ref(step),)

    def _require(self, step: Step, earlier: Iterable[StepRef]) -> None:
        for ref in earlier:
            if not self._before(step, ref):
                rule = f"need not come after {self.steps[ref]}, but would in a plan"
                raise InputError(f"{step}", rule, "order the two in the schedule")

    def _add(self, step: Step, name: str, kind: str) -> None:
        key = self._key(step, name, kind)
        if key is None:
            own = [ref for ref in self.segment if not self.steps[ref].background]
            self.done.append(Laid("nop"))
            self.base, self.segment, self.last = tuple(own) or self.base, {}, {}
            key = self._key(step, name, kind) or ("thread", 0)
        self._require(step, self.base)
        self._require(step, self._implied(step, key, name))
        self._place(step, name, kind, key)
        self.segment[_ref(step)] = key
        if step.background:
            self.pushed.append(_ref(step))
        else:
            self.last[key] = _ref(step)

    def _place(self, step: Step, name: str, kind: str, key: Key) -> None:
        if name == "flush" and _ref(step) in self.flushed.values():
            return
        if key[0] == "thread" and key[1]:
            self.done[-1].steps.append(step)
        else:
            self.done.append(Laid(name, kind, [step]))

    def _implied(self, step: Step, key: Key, name: str) -> list[StepRef]:
        """What the kernel puts before the step in its place, beside the last synchronisation."""
        found = [self.last[key]] if key in self.last else []
        if step.background or name == "flush":
            channels = {self.steps[ref].block for ref in predecessors(step) if self._is_push(ref)}
            channels |= {step.block} if step.background else set()
            found += [
                ref
                for ref in self.pushed
                if ref.block in channels and self.segment.get(ref, key) == key
            ]
        return found

    def _is_push(self, ref: StepRef) -> bool:
        return self.steps[ref].background

    def _key(self, step: Step, name: str, kind: str) -> Key | None:
        """A thread, or all of a lane, that comes after what the step must come after."""
        if not step.background and (step.reads or step.writes):
            lane: Key = ("lane", shape_of(step).lane)
            apart = any(
                meet_apart(step, self.steps[ref], in_place=self.in_place)
                for ref, other in self.segment.items()
                if other == lane
            )
            return lane if not apart and self._enough(step, lane) else None
        if name == "flush" and _ref(step) in self.flushed.values():
            push = next(p for p, flush in self.flushed.items() if flush == _ref(step))
            return self.segment.get(push)
        keys: list[Key] = [("thread", 0)]
        tail = self.done[-1] if self.done else Laid("")
        if (tail.name, tail.kind) == (name, kind) and len(tail.steps) < MAX_LIST:
            keys.append(("thread", len(tail.steps)))
        return next((key for key in reversed(keys) if self._suits(step, key)), None)

    def _suits(self, step: Step, key: Key) -> bool:
        late = key in self.last and not self._before(step, self.last[key])
        return not late and self._enough(step, key)

    def _enough(self, step: Step, key: Key) -> bool:
        """Whether all that must come before is in an earlier segment, or done by the same."""
        return all(self.segment.get(ref, key) == key for ref in predecessors(step))

    def _before(self, step: Step, earlier: StepRef) -> bool:
        """Whether an earlier step surely comes before this one, by the schedule."""
        todo, seen = [*predecessors(step)], set()
        while todo:
            ref = todo.pop()
            if ref == earlier:
                return True
            if ref not in seen and (ref.block != earlier.block or ref.index > earlier.index):
                seen.add(ref)
                todo += predecessors(self.steps[ref])
        return False


def _ref(step: Step) -> StepRef:
    return StepRef(step.block, step.index)
