"""Networks that are called with labels, against a loop written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ganbench.errors import DatasetError
from ganbench.gan.data import BatchStream, Data
from ganbench.gan.labels import Labelled
from ganbench.gan.session import Session
from ganbench.gan.streams import Latents, stream
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import CORRECT

NETS = """
import torch
from torch import nn

class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(3, 4)
        self.layers = nn.Sequential(nn.Linear(10, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 16), nn.Tanh())
    def forward(self, z, y):
        return self.layers(torch.cat([z, self.label(y)], 1)).view(-1, 1, 4, 4)

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(3, 4)
        self.layers = nn.Sequential(nn.Linear(20, 12), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(12, 1))
    def forward(self, x, y):
        assert x.shape[0] == y.shape[0] and y.dtype == torch.int64
        return self.layers(torch.cat([x.flatten(1), self.label(y)], 1))
"""

SpecOf = Callable[..., RunSpec]


@pytest.fixture(scope="module")
def own_model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("nets") / "conditional_nets.py"
    file.write_text(NETS)
    return {"generator": f"{file}:G", "discriminator": f"{file}:D", "conditional": True}


@pytest.fixture(scope="module")
def labelled(data: Data) -> Data:
    """The pictures with labels that can be told from their first pixel."""
    return replace(data, labels=data.items[:, 0, 0, 0].to(torch.int64) % 3, classes=3)


@pytest.fixture
def session_with(labelled: Data, spec_of: SpecOf, own_model: dict[str, Any]) -> Callable[..., Session]:
    def session(**fields: Any) -> Session:
        return Session(spec_of(model=own_model, **fields), labelled, torch.device("cpu"))

    return session


def test_real_labels_belong_to_their_items_and_drawn_ones_to_all_classes(
    session_with: Callable[..., Session], labelled: Data
) -> None:
    session = session_with(ratio="2:3", real_batches="per_d_update")
    seen = set()
    for _ in range(5):
        given = session.draw()
        for real in given.real:
            assert isinstance(real, Labelled)
            first = ((real.tensor[:, 0, 0, 0] + 1) * 127.5).round().to(torch.int64)
            assert torch.equal(real.labels, first % 3)
        for latents in given.latents:
            assert isinstance(latents, Labelled)
            assert latents.tensor.shape == (8, 6)
            seen |= set(latents.labels.tolist())
    assert seen == {0, 1, 2}
    assert labelled.labels is not None


def test_labels_shift_neither_latents_nor_the_order_of_items(
    session_with: Callable[..., Session], session_of: Callable[..., Session]
) -> None:
    conditional, plain = session_with().draw(), session_of().draw()
    assert isinstance(conditional.latents[0], Labelled)
    assert isinstance(conditional.real[0], Labelled)
    assert torch.equal(conditional.latents[0].tensor, plain.latents[0])
    assert torch.equal(conditional.real[0].tensor, plain.real[0])


def by_hand(session: Session, spec: RunSpec, labelled: Data, rounds: int) -> tuple[nn.Module, nn.Module]:
    """The textbook's conditional loop, 2:3, on the networks of a session that has not played."""
    g, d = session.pair.g.module, session.pair.d.module
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.999))
    cpu = torch.device("cpu")
    z = Latents(8, (6,), "normal", stream(spec.seed, "latents", "generator"))
    drawn = stream(spec.seed, "labels", "generator")
    batches = BatchStream(labelled, 8, stream(spec.seed, "data order"), cpu)
    torch.manual_seed(derive_seed(spec.seed, "model noise"))
    for _ in range(rounds):
        inputs = []
        for _ in range(2):
            inputs.append((z.next(cpu), torch.randint(3, (8,), generator=drawn)))
        real: Any = batches.next()
        for latents, y in inputs:
            fake = g(latents, y)
            opt_g.zero_grad()
            F.binary_cross_entropy_with_logits(d(fake, y), torch.ones(8, 1)).backward()
            opt_g.step()
        for _ in range(3):
            opt_d.zero_grad()
            scores, fakes = d(real.tensor, real.labels), d(fake.detach(), y)
            on_real = F.binary_cross_entropy_with_logits(scores, torch.ones(8, 1))
            (on_real + F.binary_cross_entropy_with_logits(fakes, torch.zeros(8, 1))).backward()
            opt_d.step()
    return g, d


def test_training_is_the_loop_written_by_hand(
    session_with: Callable[..., Session], spec_of: SpecOf, own_model: dict[str, Any], labelled: Data
) -> None:
    session = session_with(ratio="2:3")
    for _ in range(4):
        session.play_round()
    g, d = by_hand(session_with(ratio="2:3"), spec_of(model=own_model, ratio="2:3"), labelled, 4)
    for trained, wanted in ((session.pair.g.module, g), (session.pair.d.module, d)):
        for name, tensor in wanted.state_dict().items():
            assert torch.equal(trained.state_dict()[name], tensor), name


@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("loss", ["bce", "wgan_gp"])
def test_every_correct_strategy_trains_them(session_with: Callable[..., Session], order: str, loss: str) -> None:
    sums = {}
    for strategy in CORRECT:
        session = session_with(ratio="2:3", strategy=strategy, order=order, loss=loss)
        for _ in range(3):
            session.play_round()
        sums[strategy] = session.checksums()["weights"]
    assert sums["detach"] == sums["toggle"] == sums["inputs"] == sums["retain_deferred"]
    assert len(set(sums.values())) > 1


def test_points_between_get_the_real_items_labels(session_with: Callable[..., Session]) -> None:
    session = session_with(loss="wgan_gp")
    pair, given = session.pair, session.draw()
    labels: list[torch.Tensor] = []
    pair.d.module.register_forward_pre_hook(lambda _module, inputs: labels.append(inputs[1]))
    pair.discriminator_loss(given.real[0], pair.generate(given.latents[0]).detach())
    of_real, of_fakes, of_penalty = labels
    assert not torch.equal(of_real, of_fakes)
    assert torch.equal(of_penalty, of_real)


def test_judged_fakes_have_labels_as_frequent_as_the_datas(labelled: Data, spec_of: SpecOf, own_model: Any) -> None:
    lopsided = replace(labelled, labels=torch.zeros_like(labelled.items[:, 0, 0, 0], dtype=torch.int64))
    session = Session(spec_of(model=own_model), lopsided, torch.device("cpu"))
    seen: list[torch.Tensor] = []
    session.pair.g.module.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[1]))
    before = torch.get_rng_state()
    fakes = session.samples(300, stream(0, "evaluation"), 1)
    assert fakes.shape == (300, 1, 4, 4)
    assert torch.equal(before, torch.get_rng_state())
    assert set(torch.cat(seen).tolist()) == {0}
    assert torch.equal(fakes, session.samples(300, stream(0, "evaluation"), 1))


def test_data_without_labels_are_refused(data: Data, spec_of: SpecOf, own_model: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match=r"dataset made up has none.*conditional: false"):
        Session(spec_of(model=own_model), data, torch.device("cpu"))


def test_unconditional_networks_carry_no_labels(labelled: Data, session_of: Callable[..., Session]) -> None:
    plain = session_of()
    with_labels = Session(plain.spec, labelled, torch.device("cpu"))
    assert with_labels.data.labels is None
    for session in (plain, with_labels):
        session.play_round()
    assert plain.checksums() == with_labels.checksums()
