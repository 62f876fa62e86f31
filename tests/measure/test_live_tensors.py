"""Live bytes are exact, repeatable, and equal for real and fake tensors. Figures are worked out by hand."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ganbench.measure import GRAIN_BYTES, LiveTensorTracker, tensors_held_by
from ganbench.measure.kinds import Kind

KIB = 1024


def test_each_storage_is_rounded_up_to_the_grain() -> None:
    tracker = LiveTensorTracker()
    kept = []
    for floats, grains in ((0, 0), (1, 1), (128, 1), (129, 2), (256, 2)):
        before = tracker.current
        with tracker:
            kept.append(torch.empty(floats))
        assert tracker.current - before == grains * GRAIN_BYTES


def test_what_is_freed_is_no_longer_counted_and_the_peak_stays() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        first = torch.ones(1024)
        second = torch.ones(1024)
        assert tracker.current == 8 * KIB
        del first
        assert tracker.current == 4 * KIB
    del second
    assert tracker.current == 0
    assert tracker.peak == 8 * KIB


def test_views_and_in_place_operators_are_not_counted_twice() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        base = torch.ones(32, 32)
        views = [base.t(), base[3:], base.view(-1), base.detach(), base.unsqueeze(0).expand(4, 32, 32)]
        base.add_(1).mul_(2)
        base[0].zero_()
        assert tracker.peak == 4 * KIB
        del base
        assert tracker.current == 4 * KIB, "a view holds the whole storage"
        del views
    assert tracker.current == 0


def test_registered_tensors_count_once_and_until_they_die() -> None:
    tracker = LiveTensorTracker()
    data = torch.ones(1024)
    tracker.register([data, data, data[5:]])
    tracker.register([data])
    with tracker:
        data.add_(1)
    assert tracker.current == tracker.peak == 4 * KIB
    del data
    assert tracker.current == 0


def test_a_storage_that_changes_its_size_is_counted_at_its_new_size() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        tensor = torch.ones(1024)
        tensor.resize_(4096)
        assert tracker.current == 16 * KIB
    del tensor
    assert tracker.current == 0


def test_sparse_tensors_count_their_indices_and_values() -> None:
    table = nn.Embedding(1024, 1, sparse=True)
    tracker = LiveTensorTracker()
    tracker.register(table.parameters())
    with tracker:
        table(torch.arange(256)).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.is_sparse
    # The weight, 256 indices of 8 bytes, 256 values of 4 bytes.
    assert tracker.current == 4 * KIB + 2 * KIB + 1 * KIB
    table.zero_grad()
    assert tracker.current == 4 * KIB


def test_the_tracker_keeps_nothing_alive() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        tensor = torch.ones(8)
        tracker.register([tensor])
        reference = weakref.ref(tensor)
        del tensor
        assert reference() is None


def test_an_activation_that_only_the_graph_holds_is_live() -> None:
    tracker = LiveTensorTracker()
    source = torch.ones(1024, requires_grad=True)
    tracker.register([source])
    with tracker:
        activation = torch.tanh(source)
        loss = activation.sum()
        del activation
        gc.collect()
        assert tracker.current == 4 * KIB + 4 * KIB + GRAIN_BYTES, "tanh saves its output for backward"
        loss.backward()
        gc.collect()
        # The activation is gone, the gradient has come.
        assert tracker.current == 4 * KIB + 4 * KIB + GRAIN_BYTES
        source.grad = None
        del loss
    assert tracker.current == 4 * KIB


def test_an_activation_of_a_deleted_graph_is_freed() -> None:
    tracker = LiveTensorTracker()
    source = torch.ones(1024, requires_grad=True)
    with tracker:
        loss = source.tanh().exp().sum()
        assert tracker.current == 8 * KIB + GRAIN_BYTES
        del loss
    assert tracker.current == 0


def test_linear_and_tanh_by_hand() -> None:
    # 1024 -> 256 with 64 rows of float32.
    net = nn.Sequential(nn.Linear(1024, 256), nn.Tanh())
    rows = torch.ones(64, 1024)
    weight, bias, data = 1024 * 256 * 4, 256 * 4, 64 * 1024 * 4
    activation, scalar = 64 * 256 * 4, GRAIN_BYTES
    held = weight + bias + data
    tracker = LiveTensorTracker()
    tracker.register(tensors_held_by([net]))
    tracker.register([rows])
    assert tracker.current == held
    with tracker:
        loss = net(rows).sum()
        # Linear's output and Tanh's, before the first of them dies: Tanh saves only its own.
        assert tracker.peak == held + 2 * activation
        assert tracker.current == held + activation + scalar
        tracker.mark("forward")
        loss.backward()
        tracker.mark("backward")
        del loss
    assert tracker.peaks == {
        "forward": held + 2 * activation,
        # Loss and its gradient; Tanh's gradient; gradients of weight and bias. Tanh's output is freed once
        # used, before the weight's gradient is made.
        "backward": held + 2 * scalar + activation + weight + bias,
    }
    assert tracker.current == held + weight + bias


def test_marks_give_each_segment_its_own_peak_and_keep_the_largest() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        carried = torch.ones(1024)
        tracker.mark("d")
        torch.ones(2048)
        tracker.mark("g")
        tracker.mark("d")
        torch.ones(1024)
        tracker.mark("g")
        del carried
        tracker.mark("d")
        tracker.mark("nothing")
    assert tracker.peaks == {"d": 4 * KIB, "g": 12 * KIB, "nothing": 0}
    assert tracker.peak == 12 * KIB


def test_reset_forgets_peaks_and_keeps_what_is_live() -> None:
    tracker = LiveTensorTracker()
    with tracker:
        kept = torch.ones(1024)
        torch.ones(4096)
        tracker.mark("warm-up")
        tracker.reset()
        assert (tracker.peak, tracker.current, tracker.peaks) == (4 * KIB, 4 * KIB, {})
        tracker.mark("after")
    assert tracker.peaks == {"after": 4 * KIB}
    del kept


def test_tensors_held_by_names_parameters_gradients_buffers_and_state() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    assert len(list(tensors_held_by([net], [optimizer]))) == 4 + 3
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    # Four parameters with gradients, three buffers; two moments and a step count for each parameter.
    assert len(list(tensors_held_by([net], [optimizer]))) == 8 + 3 + 12


def mlp() -> tuple[nn.Module, torch.Tensor]:
    layers = nn.Sequential(
        nn.Linear(16, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(64, 8), nn.Tanh()
    )
    return layers, torch.ones(32, 16)


def dcgan() -> tuple[nn.Module, torch.Tensor]:
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 3, 4, 2, 1),
        nn.Tanh(),
    )
    return layers, torch.ones(4, 3, 16, 16)


def trained(
    build: Callable[[], tuple[nn.Module, torch.Tensor]], options: dict[str, Any], fake: bool = False
) -> tuple[dict[str, int], int, int]:
    """Two updates with Adam from its empty state; peaks by segment, the peak, and what is live at the end."""
    tracker = LiveTensorTracker()
    with FakeTensorMode() if fake else nullcontext():
        net, data = build()
        optimizer = torch.optim.Adam(net.parameters(), **options)
        tracker.register([*tensors_held_by([net], [optimizer]), data])
        with tracker:
            for _ in range(2):
                optimizer.zero_grad()
                loss = net(data).pow(2).mean()
                tracker.mark("forward")
                loss.backward()
                tracker.mark("backward")
                optimizer.step()
                tracker.mark("step")
                del loss
        live = tracker.current
        held = {tensor.untyped_storage()._cdata: tensor for tensor in (*tensors_held_by([net], [optimizer]), data)}
        expected = sum(-(-tensor.untyped_storage().nbytes() // 512) * 512 for tensor in held.values())
    assert live == expected, "after a step nothing is live but what model, optimizer and data hold"
    return tracker.peaks, tracker.peak, live


OPTIMIZERS = [
    pytest.param({"foreach": False}, id="single"),
    pytest.param({"foreach": True}, id="foreach"),
    pytest.param({"fused": True}, id="fused"),
]


@pytest.mark.parametrize("build", [mlp, dcgan])
@pytest.mark.parametrize("options", OPTIMIZERS)
class TestTraining:
    def test_the_same_run_gives_the_same_bytes(
        self, build: Callable[[], tuple[nn.Module, torch.Tensor]], options: dict[str, Any]
    ) -> None:
        assert trained(build, options) == trained(build, options)

    def test_fake_tensors_give_the_figures_of_real_ones(
        self, build: Callable[[], tuple[nn.Module, torch.Tensor]], options: dict[str, Any]
    ) -> None:
        assert trained(build, options, fake=True) == trained(build, options)


def test_a_fused_step_needs_less_than_a_foreach_step() -> None:
    fused, _, _ = trained(mlp, {"fused": True})
    foreach, _, _ = trained(mlp, {"foreach": True})
    assert fused["step"] < foreach["step"]
    assert fused["forward"] == foreach["forward"]


def peak_of_a_generator_update(separation: str) -> int:
    """One generator update followed by one discriminator update on the same fake batch."""
    generator = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    noise = torch.ones(256, 32)
    tracker = LiveTensorTracker()
    tracker.register([*tensors_held_by([generator, discriminator]), noise])
    with tracker:
        fake = generator(noise)
        g_loss = discriminator(fake).mean()
        g_loss.backward(retain_graph=separation == "retain")
        tracker.mark("g")
        given = fake if separation == "retain" else fake.detach()
        d_loss = discriminator(given).pow(2).mean()
        d_loss.backward()
        tracker.mark("d")
    return tracker.peaks["d"]


def test_a_retained_graph_has_a_higher_peak_than_a_freed_one() -> None:
    retained, detached = peak_of_a_generator_update("retain"), peak_of_a_generator_update("detach")
    # At least the generator's hidden activation, which only the retained graph still holds.
    assert retained >= detached + 256 * 128 * 4


def test_kept_losses_keep_their_graphs_live() -> None:
    def live_after(rounds: int, keep: Callable[[torch.Tensor], torch.Tensor]) -> int:
        weight = torch.ones(1024, requires_grad=True)
        tracker = LiveTensorTracker()
        losses = []
        with tracker:
            for _ in range(rounds):
                losses.append(keep(weight.exp().sum()))
            return tracker.current

    assert live_after(5, torch.Tensor.detach) == 5 * GRAIN_BYTES
    assert live_after(5, lambda loss: loss) == 5 * (GRAIN_BYTES + 4 * KIB)


def test_a_tracker_does_not_change_what_is_computed() -> None:
    def gradients(tracker: LiveTensorTracker | None) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net, data = mlp()
        with tracker or nullcontext():
            net(data).pow(2).mean().backward()
        return [parameter.grad for parameter in net.parameters() if parameter.grad is not None]

    for watched, free in zip(gradients(LiveTensorTracker()), gradients(None), strict=True):
        assert torch.equal(watched, free)


@pytest.mark.cuda
def test_cuda_tensors_are_counted_as_the_allocator_counts_them() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to make tensors on")
    torch.ones(1, device="cuda").exp()
    before = torch.cuda.memory_allocated()
    tracker = LiveTensorTracker()
    with tracker:
        source = torch.ones(1000, device="cuda", requires_grad=True)
        loss = source.tanh().sum()
        assert tracker.current == torch.cuda.memory_allocated() - before
        loss.backward()
        assert tracker.current == torch.cuda.memory_allocated() - before
        del loss


def test_a_peak_is_split_by_what_its_bytes_are_for() -> None:
    # The networks of `test_linear_and_tanh_by_hand`.
    net = nn.Sequential(nn.Linear(1024, 256), nn.Tanh())
    rows = torch.ones(64, 1024)
    weight, bias, data = 1024 * 256 * 4, 256 * 4, 64 * 1024 * 4
    activation, scalar = 64 * 256 * 4, GRAIN_BYTES
    tracker = LiveTensorTracker()
    tracker.register(net.parameters(), Kind.PARAMETERS)
    tracker.register([rows], Kind.OTHER)
    with tracker, tracker.watching(net.parameters()):
        loss = net(rows).sum()
        tracker.mark("forward")
        loss.backward()
        tracker.mark("backward")
        del loss
    assert tracker.moment("forward").split() == {
        "parameters": weight + bias,
        "gradients": 0,
        "optimizer_state": 0,
        # Tanh's result. Linear saves the rows, but those are held anyway.
        "saved_for_backward": activation,
        "other": data + activation,
    }
    assert tracker.moment("backward").split() == {
        "parameters": weight + bias,
        # Counted as such although the weight's becomes one only after the peak.
        "gradients": weight + bias,
        "optimizer_state": 0,
        "saved_for_backward": 0,
        "other": data + 2 * scalar + activation,
    }
    assert sum(tracker.moment("backward").split().values()) == tracker.peaks["backward"]


def test_what_a_graph_keeps_counts_as_saved_until_the_graph_lets_go() -> None:
    tracker = LiveTensorTracker()
    source = torch.ones(1024, requires_grad=True)
    tracker.register([source], Kind.PARAMETERS)
    with tracker, tracker.watching([source]):
        kept = source.tanh()
        tracker.mark("made")
        kept.sum().backward(retain_graph=True)
        source.grad = None
        tracker.mark("gone through once")
        between = tracker.position
        tracker.mark("retained")
        kept.sum().backward()
        source.grad = None
        tracker.mark("gone through twice")
        tracker.mark("let go")
    saved = {segment: tracker.moment(segment).split()["saved_for_backward"] for segment in tracker.peaks}
    assert saved == {
        "made": 4 * KIB,
        "gone through once": 4 * KIB,
        "retained": 4 * KIB,
        "gone through twice": 4 * KIB,
        "let go": 0,
    }
    assert tracker.moment("retained").saved_before(between) == 4 * KIB
    assert tracker.moment("retained").saved_before(1) == 4 * KIB
    assert tracker.moment("retained").saved_before(0) == 0
    assert tracker.moment("let go").split()["other"] == 4 * KIB, "it lives on, and not because autograd saved it"
    del kept
    assert tracker.current == 4 * KIB


def test_a_retained_graph_of_which_nothing_is_left_is_freed_at_once() -> None:
    tracker = LiveTensorTracker()
    source = torch.ones(1024, requires_grad=True)
    tracker.register([source])
    gc.collect()
    gc.disable()
    try:
        with tracker, tracker.watching([source]):
            loss = source.tanh().exp().sum()
            loss.backward(retain_graph=True)
            source.grad = None
            del loss
            assert tracker.current == 4 * KIB
    finally:
        gc.enable()


def test_second_derivatives_are_the_same_when_watched() -> None:
    def penalty(tracker: LiveTensorTracker | None) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net, data = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1)), torch.rand(32, 16)
        parameters = list(net.parameters())
        with tracker or nullcontext(), tracker.watching(parameters) if tracker else nullcontext():
            data.requires_grad_(True)
            (slope,) = torch.autograd.grad(net(data).sum(), data, create_graph=True)
            (slope.flatten(1).norm(2, dim=1) - 1).square().mean().backward()
        return [parameter.grad for parameter in parameters if parameter.grad is not None]

    watched, free = penalty(LiveTensorTracker()), penalty(None)
    assert len(watched) == len(free) == 3  # the last bias has none
    for one, other in zip(watched, free, strict=True):
        assert torch.equal(one, other)
