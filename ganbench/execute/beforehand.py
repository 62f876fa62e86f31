"""What is looked over before any run: that data, networks, loss and optimizer are there and can be called.

torch's floor is imported inside the functions: the parent imports this module too, and never loads torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ganbench.errors import DatasetError, DeviceUnavailable, ErrorKind, UsageError, UserCodeError, classify
from ganbench.execute.judging import evaluator_for
from ganbench.record.loading import Loaded
from ganbench.spec.dataset import AnyDataset, PictureSpec, UserDatasetSpec
from ganbench.spec.model import UserModelSpec
from ganbench.spec.place import role_of
from ganbench.spec.run import RunSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ganbench.gan.data import Data


@dataclass(frozen=True)
class Found:
    """What looking a spec over found: its device and dataset as settled on this machine, and lines worth saying."""

    device: str
    dataset: AnyDataset
    lines: list[str]


def look_over(spec: RunSpec, download: bool) -> Found:
    """Check before any run that data, networks and batch size fit; nothing is trained. A user's networks are called
    once.

    A device that is not there is no error here: its runs are skipped with the reason.

    Raises:
        DatasetError, UserCodeError: what does not fit, and what to do.
    """
    import torch

    from ganbench.gan.data import load
    from ganbench.gan.losses import make_loss
    from ganbench.gan.models import build, is_conditional
    from ganbench.gan.session import device_for, require_labels

    name, lines = spec.device, []
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = None
    try:
        device = device_for(name)
    except DeviceUnavailable as error:
        lines.append(str(error))
    data = load(spec.dataset, download=download)
    lines.append(data_line(spec.dataset, data))
    if spec.batch_size > data.count:
        raise DatasetError(
            f"batch_size is {spec.batch_size}, but {data.name} has {data.count} items; choose at most {data.count}"
        )
    if is_conditional(spec):
        require_labels(data)
    evaluator_for(spec, data)
    loss = make_loss(spec.loss)
    generator, discriminator = build(spec, data.shape, on_probabilities=loss.on_probabilities)
    for network, role in ((generator, "generator"), (discriminator, "discriminator")):
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise UserCodeError(f"{role}: it has no parameters that can be trained")
    if spec.foreign():
        if device is not None:
            _call_once(spec, data, device)
        lines += file_lines(spec)
    return Found(name, _with_content(spec.dataset, data), lines)


def data_line(dataset: AnyDataset, data: Data) -> str:
    """One line about a dataset as it was read."""
    line = f"{data.name}: {data.count} items of shape {tuple(data.shape)}"
    if isinstance(dataset, UserDatasetSpec):
        if data.value_range is not None and dataset.range is None:
            line += ", range [{:g}, {:g}] taken from the data (dataset.range states it)".format(*data.value_range)
        line += f", {data.classes} classes" if data.classes else ", no labels"
    return line


def _with_content(dataset: AnyDataset, data: Data) -> AnyDataset:
    """With what identifies the items where a name does not."""
    if isinstance(dataset, PictureSpec) and dataset.name == "folder":
        from ganbench.gan.data import folder_content

        return dataset.model_copy(update={"content": folder_content(dataset.root)})
    if isinstance(dataset, UserDatasetSpec):
        from ganbench.gan.data.user import content_of

        return dataset.model_copy(update={"content": content_of(data)})
    return dataset


def _call_once(spec: RunSpec, data: Data, device: torch.device) -> None:
    """Everything that a user brought is made and called as the first round does it, without going backward.

    Raises:
        UserCodeError: it raises, or gives what training cannot use.
    """
    from ganbench.gan.models.output import a_tensor
    from ganbench.gan.session import Session
    from ganbench.spec.strategy import REFERENCE

    session = Session(spec.model_copy(update={"strategy": REFERENCE, "compile": False}), data, device)
    pair, given, step = session.pair, session.draw(), "generator"
    try:
        fakes = pair.generate(given.latents[0])
        made = a_tensor(_plain(fakes), "generator")
        if made.shape[1:] != data.shape or len(made) != spec.batch_size:
            raise UserCodeError(
                f"generator: it makes {tuple(made.shape)} of {spec.batch_size} latents of shape "
                f"{tuple(spec.latent.shape)}, {data.name} has items of shape {tuple(data.shape)}; choose dataset and "
                "arguments that agree, or give output.generator a function of yours that reshapes"
            )
        step = "discriminator"
        real_scores, fake_scores = (a_tensor(pair.score(items), "discriminator") for items in (given.real[0], fakes))
        step = "loss"
        pair.loss.generator(fake_scores)
        pair.loss.discriminator(real_scores, fake_scores)
    except UsageError:
        raise
    except Exception as error:
        if classify(type(error).__name__, str(error)) is not ErrorKind.OUT_OF_MEMORY:
            raise UserCodeError(_failed(spec, step, error)) from error
    finally:
        pair.notes.clear()


def _plain(fakes: Tensor) -> object:
    from ganbench.gan.labels import Labelled

    return fakes.tensor if isinstance(fakes, Labelled) else fakes


def _failed(spec: RunSpec, step: str, error: Exception) -> str:
    from ganbench.gan.foreign.telling import told

    model = spec.model
    place = ""
    if step == "loss" and not isinstance(spec.loss, str):
        place = spec.loss.place or spec.loss.discriminator or ""
    elif step != "loss" and isinstance(model, UserModelSpec):
        place = getattr(model, step) or model.factory or ""
    where, _, name = place.rpartition(":")
    if not where:
        return f"{step}: {type(error).__name__}: {error}"
    takes = {
        "generator": f"latents of shape {(spec.batch_size, *spec.latent.shape)}",
        "discriminator": f"items of {spec.dataset.name}",
        "loss": "scores",
    }[step]
    labels = " and labels" if step != "loss" and isinstance(model, UserModelSpec) and model.conditional else ""
    return f"{step}: {name} of '{where}', called with {takes}{labels}, raised {told(error, where)}"


def file_lines(spec: RunSpec, switches: bool = True) -> list[str]:
    """How each user's file was loaded, where there is something to say; `switches`: also what it set globally."""
    return list(dict.fromkeys(line for loaded in loadings(spec) for line in _of_loading(loaded, switches)))


def loadings(spec: RunSpec) -> list[Loaded]:
    """How each user's file was loaded, once for every file and command line."""
    from ganbench.gan.foreign.names import loading

    found: list[Loaded] = []
    for name, part in spec.foreign().items():
        argv: tuple[str, ...] = getattr(part, "argv", ())
        for field, place in part.places().items():
            loaded = loading(place, role_of(name, field), argv)
            if loaded not in found:
                found.append(loaded)
    return found


def _of_loading(loaded: Loaded, switches: bool) -> list[str]:
    said = [] if loaded.whole else [loaded.summary()]
    if loaded.wrote:
        said.append(f"{loaded.file}: wrote {', '.join(loaded.wrote)} while it was loaded, removed again")
    kept = {name: values for name, values in loaded.switches.items() if "random state" not in name}
    if kept and switches:
        text = ", ".join(f"{name} {after}" for name, (_, after) in kept.items())
        said.append(f"{loaded.file}: set {text}, put back and not set in runs")
    return said


def first_present(choices: list[AnyDataset]) -> int | None:
    """The position of the first dataset whose files are there."""
    from ganbench.gan.data import present

    return next((n for n, choice in enumerate(choices) if present(choice)), None)
