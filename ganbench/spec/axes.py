"""From a mapping in which any field may hold several values to the list of arms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from ganbench.errors import ExperimentError
from ganbench.spec.strategy import CORRECT, STRATEGIES

# Fields whose one value is itself a list: only a list of lists is an axis there.
LIST_VALUED = frozenset({"betas", "range", "shape"})
# What is handed to a user's own code is never taken apart.
OPAQUE = frozenset({"generator_args", "discriminator_args", "factory_args", "args", "argv", "sources"})
MAX_ARMS = 100_000
_DEEPEST = 8


def axes_of(fields: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The fields with several values: dotted name -> values, sorted by name, each value once."""
    return {name: values for name, values in sorted(_walk(fields, "")) if len(values) > 1}


def expand(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the axes' values, as nested mappings with one value a field.

    Raises:
        ExperimentError: an axis without values, or more than `MAX_ARMS` combinations.
    """
    leaves = sorted(_walk(fields, ""))
    arms = 1
    for name, values in leaves:
        if not values:
            raise ExperimentError(f"{name}: an axis needs at least one value, got an empty list")
        arms *= len(values)
    if arms > MAX_ARMS:
        raise ExperimentError(f"the axes span {arms} arms, at most {MAX_ARMS} are allowed; give fewer values")
    names = [name for name, _ in leaves]
    combinations = itertools.product(*(values for _, values in leaves))
    return [_nested(zip(names, combination, strict=True)) for combination in combinations]


def _walk(fields: Mapping[str, Any], prefix: str, depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    if depth > _DEEPEST:
        raise ExperimentError(f"{prefix.rstrip('.')}: nested too deeply; an alias that contains itself?")
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if not isinstance(key, str) or "." in key:
            raise ExperimentError(f"{name}: a key is a word without dots, got {key!r}; nest mappings instead")
        if isinstance(value, Mapping) and value and key not in OPAQUE:
            yield from _walk(value, f"{name}.", depth + 1)
        elif isinstance(value, list) and key not in OPAQUE:
            several = key not in LIST_VALUED or any(isinstance(item, list) for item in value)
            yield name, _once(name, _options(key, value) if several else [value])
        else:
            yield name, _options(key, [value])


def _options(key: str, values: list[Any]) -> list[Any]:
    if key != "strategy":
        return values
    groups = {"all": list(STRATEGIES), "correct": list(CORRECT)}
    return [name for value in values for name in groups.get(value if isinstance(value, str) else "", [value])]


def _once(name: str, values: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    try:
        for value in values:
            if value not in distinct:
                distinct.append(value)
    except RecursionError:
        raise ExperimentError(f"{name}: nested too deeply; an alias that contains itself?") from None
    return distinct


def _nested(items: Iterator[tuple[str, Any]] | zip[tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in items:
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree
