"""The FID with weights of the user's: what is missing is told; where torch-fidelity is, the figure is its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from ganbench.errors import DatasetError
from ganbench.execute.judging import evaluator_for
from ganbench.gan.data import load
from ganbench.quality.inception import as_bytes, load_inception
from ganbench.spec.run import RunSpec

HERE = importlib.util.find_spec("torch_fidelity") is not None


def spec_of(fid: object, **fields: object) -> RunSpec:
    return RunSpec.model_validate({"evaluate": {"samples": 50, "fid": fid}, "device": "cpu", **fields})


def test_asking_for_the_fid_is_another_run_wherever_the_weights_lie() -> None:
    assert spec_of(None).run_key == RunSpec.model_validate({"evaluate": {"samples": 50}, "device": "cpu"}).run_key
    assert spec_of("a/w.pth").run_key == spec_of("b/w.pth").run_key != spec_of(None).run_key


def test_weights_that_are_not_there() -> None:
    spec = spec_of("no/weights.pth")
    with pytest.raises(DatasetError, match=r"evaluate.fid names a file of Inception weights; there is no 'no/weights"):
        evaluator_for(spec, load(spec.dataset))


def test_points_have_no_fid() -> None:
    spec = spec_of("w.pth", dataset="ring8", model="mlp2d")
    with pytest.raises(DatasetError, match="judges pictures; ring8 has items of shape"):
        evaluator_for(spec, load(spec.dataset))


@pytest.mark.skipif(HERE, reason="torch-fidelity is installed")
def test_the_package_is_asked_for(tmp_path: Path) -> None:
    weights = tmp_path / "weights.pth"
    torch.save({}, weights)
    with pytest.raises(DatasetError, match=r"pip install 'ganbench\[fid\]'"):
        load_inception(weights)


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_become_bytes_of_three_channels(channels: int) -> None:
    unit = torch.tensor([0.0, 0.5, 1.0, 0.2]).view(1, 1, 2, 2).expand(2, channels, 2, 2)
    made = as_bytes(unit)
    assert made.shape == (2, 3, 2, 2)
    assert made.dtype == torch.uint8
    assert made[0, 2].flatten().tolist() == [0, 128, 255, 51]


@pytest.mark.skipif(not HERE, reason="torch-fidelity is not installed: pip install 'ganbench[fid]'")
def test_the_figure_is_that_of_torch_fidelity(tmp_path: Path) -> None:
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

    from ganbench.quality import PictureEvaluator
    from ganbench.quality.inception import METRIC, WithInception

    weights = tmp_path / "weights.pth"
    network = FeatureExtractorInceptionV3.__new__(FeatureExtractorInceptionV3)
    with pytest.MonkeyPatch.context() as patch:  # random weights: the real ones cannot be fetched by a test
        module = "torch_fidelity.feature_extractor_inceptionv3"
        patch.setattr(f"{module}.load_state_dict_from_url", lambda *_a, **_k: {})
        patch.setattr(FeatureExtractorInceptionV3, "load_state_dict", lambda *_a, **_k: None)
        network = FeatureExtractorInceptionV3("random", ["2048"])
    torch.save(network.state_dict(), weights)
    real = torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    inner = PictureEvaluator(real, (-1.0, 1.0), 12, torch.Generator().manual_seed(0))
    with pytest.MonkeyPatch.context() as patch:  # looking an experiment over must not take minutes
        patch.setattr(WithInception, "_features", None)
        before = torch.get_rng_state()
        judge = WithInception(inner, real, (-1.0, 1.0), weights)
        assert torch.equal(torch.get_rng_state(), before)
    fakes = real[12:].flip(3)
    features = [network(as_bytes((part + 1) / 2))[0] for part in (real[:12], fakes)]
    statistics = [fid_features_to_statistics(part) for part in features]
    expected = fid_statistics_to_metric(*statistics, False)["frechet_inception_distance"]
    found = judge.score(fakes)
    assert found[METRIC] == pytest.approx(expected, rel=1e-3)
    assert judge.primary == inner.primary
    assert judge.floor == {**inner.floor, METRIC: judge.score(real[12:])[METRIC]}
    assert set(found) == set(judge.metrics)
    torch.save({"a": torch.zeros(1)}, weights)
    with pytest.raises(DatasetError, match="holds no Inception weights"):
        load_inception(weights)
