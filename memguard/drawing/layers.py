"""Which row each box goes to, and in which order: the first half of a layered drawing. Pure.

The steps are those of Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical
System Structures" (1981): break cycles, layer by longest path, order by barycentre.
"""

from collections.abc import Iterable, Mapping, Sequence

Edge = tuple[str, str]

_SWEEPS = 8
"""Passes down and up; the graphs here settle in two or three."""


def split_cycles(nodes: Sequence[str], edges: Iterable[Edge]) -> tuple[set[Edge], set[Edge]]:
    """Edges that go on, and edges that go back to where the flow came from."""
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    forward: set[Edge] = set()
    back: set[Edge] = set()
    state: dict[str, int] = {}

    def visit(node: str) -> None:
        state[node] = 1
        for target in after[node]:
            if state.get(target) == 1:
                back.add((node, target))
                continue
            forward.add((node, target))
            if target not in state:
                visit(target)
        state[node] = 2

    for node in nodes:
        if node not in state:
            visit(node)
    return forward, back


def rows_of(nodes: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The row of each node: one below the lowest that leads to it."""
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        before[target].append(source)
    rows: dict[str, int] = {}

    def row(node: str) -> int:
        if node not in rows:
            rows[node] = 1 + max((row(each) for each in before[node]), default=-1)
        return rows[node]

    return {node: row(node) for node in nodes}


def via_of(edge: Edge, rows: Mapping[str, int]) -> tuple[str, ...]:
    """Names of the bends that an edge has in the rows between its ends."""
    source, target = edge
    return tuple(f"{source}>{target}@{at}" for at in range(rows[source] + 1, rows[target]))


def order_rows(rows: Mapping[str, int], edges: Sequence[Edge]) -> list[list[str]]:
    """The nodes of each row from left to right, with few crossings.

    Args:
        rows: The row of each node and bend.
        edges: Each between neighbouring rows.
    """
    ordered: list[list[str]] = [[] for _ in range(max(rows.values(), default=-1) + 1)]
    for node, row in rows.items():
        ordered[row].append(node)
    above: dict[str, list[str]] = {node: [] for node in rows}
    below: dict[str, list[str]] = {node: [] for node in rows}
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        numbers = range(1, len(ordered)) if down else range(len(ordered) - 2, -1, -1)
        for at in numbers:
            beside = ordered[at - 1 if down else at + 1]
            place = {node: i for i, node in enumerate(beside)}
            linked = above if down else below
            here = {node: i for i, node in enumerate(ordered[at])}
            centre = {
                node: _mean([place[each] for each in linked[node]], here[node])
                for node in ordered[at]
            }
            ordered[at].sort(key=lambda node, c=centre: c[node])
    return ordered


def _mean(places: Sequence[int], otherwise: int) -> float:
    return sum(places) / len(places) if places else float(otherwise)
