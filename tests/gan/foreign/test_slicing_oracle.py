"""What a slice computes is what the whole script computes: random scripts, run whole and sliced."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ganbench.gan.foreign.parts import parts_of
from ganbench.gan.foreign.slicing import Slice

NUMBERS = ("a", "b", "c")
LISTS = ("xs", "ys", "zs")

START = """
from contextlib import nullcontext
import math as m
a, b, c = 1, 2, 3
xs, ys = [1], [2, 3]
zs = []
table = {"xs": xs}
def set_a(value):
    global a
    a = value
def grow(some, value=1):
    some.append(value)
def pass_on(some):
    grow(some)
def to_ys(value):
    here = ys
    here.append(value)
def total(some):
    return sum(some) + c
"""
END = """
def want():
    return ({names})
result = want()
"""


def block(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for text in lines for line in text.splitlines())


number = st.one_of(
    st.integers(0, 5).map(str),
    st.sampled_from(NUMBERS),
    st.sampled_from([f"len({name})" for name in LISTS]),
    st.sampled_from([f"total({name})" for name in LISTS]),
    st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)).map(lambda two: f"{two[0]} + {two[1]}"),
)
name = st.sampled_from(NUMBERS)
some = st.sampled_from(LISTS)
SIMPLE = st.one_of(
    st.tuples(name, number).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(name, number).map(lambda t: f"{t[0]} += {t[1]}"),
    st.tuples(name, name).map(lambda t: f"{t[0]}, {t[1]} = {t[1]}, {t[0]}"),
    st.tuples(some, number).map(lambda t: f"{t[0]}.append({t[1]})"),
    st.tuples(some, number).map(lambda t: f"{t[0]}[:1] = [{t[1]}]"),
    st.tuples(some, number).map(lambda t: f"{t[0]} += [{t[1]}]"),
    st.tuples(some, number).map(lambda t: f"{t[0]} = [{t[1]}]"),
    st.tuples(some, some).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(some, some).map(lambda t: f"{t[0]} = {t[1]} if a > 2 else {t[0]}"),
    st.tuples(some, some).map(lambda t: f"{t[0]}, {t[1]} = {t[1]}, {t[0]}"),
    st.tuples(some, some).map(lambda t: f"{t[0]} = {t[0]} + {t[1]}[:2]"),
    st.tuples(some, number).map(lambda t: f"grow({t[0]}, {t[1]})"),
    st.tuples(some).map(lambda t: f"pass_on({t[0]})"),
    st.tuples(name, some).map(lambda t: f"{t[0]} = {t[1]}.pop() if {t[1]} else 0"),
    number.map(lambda t: f"set_a({t})"),
    number.map(lambda t: f"to_ys({t})"),
    number.map(lambda t: f"table['xs'].append({t})"),
    some.map(lambda t: f"table['xs'] = {t}"),
    some.map(lambda t: f"{t} = table['xs']"),
    st.tuples(some, number).map(lambda t: f"setattr(m, 'unused', {t[1]})"),
    st.sampled_from((*NUMBERS, "7")).map(lambda t: f"def total(some):\n    return len(some) + {t}"),
    st.tuples(name, some).map(lambda t: f"{t[0]} = sum(v for v in {t[1]} if v < 9)"),
    st.tuples(name, number).map(lambda t: f"print({t[0]}, end='') if (b := {t[1]}) < 0 else None"),
    st.tuples(some, some).map(lambda t: f"for one in ({t[0]}, {t[1]}):\n    one.append(4)"),
)


def compounds(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(number, body, body).map(lambda t: f"if {t[0]} > 2:\n{block(t[1])}\nelse:\n{block(t[2])}"),
        st.tuples(number, body).map(lambda t: f"if {t[0]} > 2:\n{block(t[1])}"),
        st.tuples(body, number).map(lambda t: f"for i in range(3):\n{block(t[0])}\n    if {t[1]} > 3:\n        break"),
        st.tuples(name, body).map(lambda t: f"for {t[0]} in (1, 2):\n{block(t[1])}\nelse:\n    c = 7"),
        st.tuples(name, body).map(lambda t: f"with nullcontext(5) as {t[0]}:\n{block(t[1])}"),
        st.tuples(body, number, body).map(
            lambda t: f"try:\n{block(t[0])}\n    1 / ({t[1]} - 2)\nexcept ArithmeticError:\n{block(t[2])}"
        ),
    )


STATEMENT = st.recursive(SIMPLE, compounds, max_leaves=5)


def outcome(tree: ast.Module) -> Any:
    space: dict[str, Any] = {}
    exec(compile(tree, "script", "exec"), space)
    return space["want"]()


@settings(max_examples=80, deadline=None)
@given(st.lists(STATEMENT, min_size=1, max_size=8), st.sets(st.sampled_from((*NUMBERS, *LISTS)), min_size=1))
def test_a_slice_gives_what_the_whole_gives(statements: list[str], read: set[str]) -> None:
    text = START + "\n".join(statements) + END.format(names=", ".join(sorted(read)) + ",")
    parts = parts_of(ast.parse(text))
    sliced = parts.keeping(Slice(parts, {"want"}).kept)
    whole = outcome(ast.parse(text))
    assert outcome(sliced) == whole, f"{text}\n--- sliced\n{ast.unparse(sliced)}"
    # Slicing what was sliced takes nothing more away that matters, and never adds.
    again = parts_of(sliced)
    assert Slice(again, {"want"}).kept <= {part.number for part in again.all}
