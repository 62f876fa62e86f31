"""The stream of batches: what an epoch holds, what is dropped, what the seed decides."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ganbench.errors import DatasetError
from ganbench.gan.data import BatchStream, Data

CPU = torch.device("cpu")


def numbered(count: int) -> Data:
    """Pictures of one pixel whose float value is their number."""
    items = torch.arange(count, dtype=torch.uint8).view(count, 1, 1, 1)
    return Data("numbered", items, (0.0, 255.0))


def stream(count: int, batch_size: int, seed: int = 0) -> BatchStream:
    return BatchStream(numbered(count), batch_size, torch.Generator().manual_seed(seed), CPU)


def numbers(batch: torch.Tensor) -> list[int]:
    return [round(value) for value in batch.flatten().tolist()]


sizes = st.integers(1, 40).flatmap(lambda count: st.tuples(st.just(count), st.integers(1, count)))


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(0, 2**63 - 1), st.integers(1, 3))
def test_an_epoch_holds_each_item_at_most_once(sizes: tuple[int, int], seed: int, epochs: int) -> None:
    count, batch_size = sizes
    batches = stream(count, batch_size, seed)
    for epoch in range(epochs):
        assert (batches.epochs, batches.dropped) == (epoch, epoch * (count % batch_size))
        seen = [number for _ in range(count // batch_size) for number in numbers(batches.next())]
        assert len(set(seen)) == len(seen) == count - count % batch_size
        assert set(seen) <= set(range(count))
    assert (batches.epochs, batches.dropped) == (epochs, epochs * (count % batch_size))


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_batches(sizes: tuple[int, int], seed: int) -> None:
    first, second = stream(*sizes, seed), stream(*sizes, seed)
    for _ in range(5):
        assert torch.equal(first.next(), second.next())


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(0, 2**63 - 1))
def test_two_batch_sizes_go_through_an_epoch_in_the_same_order(sizes: tuple[int, int], seed: int) -> None:
    count, batch_size = sizes
    one_by_one, whole = stream(count, 1, seed), stream(count, batch_size, seed)
    for _ in range(count // batch_size):
        assert numbers(whole.next()) == [numbers(one_by_one.next())[0] for _ in range(batch_size)]


def test_seeds_and_epochs_have_orders_of_their_own() -> None:
    batches = stream(40, 40, seed=1)
    first, second = numbers(batches.next()), numbers(batches.next())
    assert first != second
    assert first != numbers(stream(40, 40, seed=2).next())
    assert sorted(first) == sorted(second) == list(range(40))


def test_a_batch_is_float32_with_the_shape_of_the_items() -> None:
    items = torch.randint(0, 256, (10, 3, 4, 4), dtype=torch.uint8)
    batches = BatchStream(Data("noise", items, (-1.0, 1.0)), 4, torch.Generator(), CPU)
    batch = batches.next()
    assert (batch.dtype, tuple(batch.shape), batch.device) == (torch.float32, (4, 3, 4, 4), CPU)
    batch.zero_()
    assert items.any()


def test_points_are_streamed_as_they_are() -> None:
    points = torch.randn(9, 2)
    batches = BatchStream(Data("points", points), 9, torch.Generator(), CPU)
    batch = batches.next()
    batch_rows = {tuple(row) for row in batch.tolist()}
    assert batch_rows == {tuple(row) for row in points.tolist()}
    batch.zero_()
    assert points.any()


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    stream(10, 3).next()
    assert torch.equal(before, torch.get_rng_state())


def test_the_items_are_moved_once_and_as_bytes() -> None:
    data = numbered(10)
    batches = BatchStream(data, 2, torch.Generator(), torch.device("meta"))
    assert batches._data.items.dtype == torch.uint8
    assert batches.next().device.type == "meta"
    held = batches._data.items
    batches.next()
    assert batches._data.items is held


def test_a_batch_larger_than_the_dataset_is_refused() -> None:
    message = "^batch_size is 11, dataset numbered has 10 pictures; choose at most 10$"
    with pytest.raises(DatasetError, match=message):
        stream(10, 11)
    with pytest.raises(DatasetError, match="has 4 points; choose at most 4"):
        BatchStream(Data("points", torch.zeros(4, 2)), 5, torch.Generator(), CPU)
    with pytest.raises(DatasetError, match=r"batch_size is 0, .* choose at least 1"):
        stream(10, 0)
