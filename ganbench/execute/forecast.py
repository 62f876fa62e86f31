"""Peak memory before a run: its session is built of fake tensors and plays the rounds that memory is measured in.

Nothing is computed and no tensor takes memory, yet every storage is made and freed where a real run on the CPU makes
and frees it: the forecast is that run's figure to the byte.

torch is imported inside the functions: the parent imports this module too, and never loads torch. A parent asks for
them through `LocalExecutor.ask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ganbench.errors import UsageError, classify
from ganbench.execute.memory import memory_of
from ganbench.record.memory import LiveMemory
from ganbench.spec.dataset import AnyDataset, PointSpec, UserDatasetSpec
from ganbench.spec.place import role_of
from ganbench.spec.run import RunSpec
from ganbench.spec.value import canonical_json

if TYPE_CHECKING:
    from ganbench.gan.data import Data
    from ganbench.gan.session import Session

# Training splits as published; a folder's pictures are counted where they lie.
_COUNTS = {"digits": 1797, "mnist": 60000, "fashion_mnist": 60000, "kmnist": 60000, "cifar10": 50000}
_CLASSES = {"digits": 10, "mnist": 10, "fashion_mnist": 10, "kmnist": 10, "cifar10": 10, "ring8": 8, "grid25": 25}
# The most that a spec may ask for.
_LARGEST_BATCH = 1_000_000


@dataclass(frozen=True)
class Forecast:
    """What a run will need, or why that cannot be said."""

    memory: LiveMemory | None
    reason: str = ""


def forecast(spec: RunSpec) -> Forecast:
    """The live memory that `memory_of` will find in the real run on the CPU. CUDA and `auto` are served by the CPU.

    None with the reason where the run raises (as some strategies do by design), where it is compiled, where it needs
    numbers that fake tensors do not have (fp16's gradient scaler; a network that looks at its values).

    Raises:
        UsageError: the data or a user's file cannot be used.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ganbench.gan.session import Session
    from ganbench.measure.fake_cpu import FakeCpu

    if spec.compile:
        return Forecast(None, "compiled networks need other memory than the uncompiled ones that can be watched")
    if spec.precision == "fp16":
        return Forecast(None, "fp16's gradient scaler decides by the gradients' values, which a forecast has not")
    device = torch.device("cpu")
    form = _form(spec.dataset)
    _load_files(spec)
    # Tensors that a user's file made are real ones, and may be used. The session seeds the global random state: it
    # is put back.
    with torch.random.fork_rng(devices=[]), FakeTensorMode(allow_non_fake_inputs=bool(spec.foreign())), FakeCpu():
        try:
            session = Session(spec, form.stand_in(spec.dataset.name), device)
            # Not watched: here optimizers make their state, and a strategy that raises does so as in the real run.
            with _versions_counted(session):
                session.play_round()
            return Forecast(memory_of(session))
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the round raises, the run raises
            name, text = type(error).__name__, str(error)
            first_line = (text.splitlines() or [""])[0]
            return Forecast(None, f"raises {classify(name, text)}: {name}: {first_line}")


def _load_files(spec: RunSpec) -> None:
    """A user's files are loaded for real: what they make while they are loaded must not be fake, here or later."""
    from ganbench.gan.foreign.names import named

    for name, part in spec.foreign().items():
        for field, place in part.places().items():
            named(place, role_of(name, field), getattr(part, "argv", ()))


@contextmanager
def _versions_counted(session: Session) -> Iterator[None]:
    """Let autograd see that a foreach step changed the weights: it does on real tensors, not on fake ones, and a
    strategy that uses stale weights would not raise."""
    from torch.autograd.graph import increment_version

    players = (session.pair.g, session.pair.d)
    for player in players:
        if player.optimizer.defaults.get("foreach"):
            player.before_step = lambda player: increment_version(
                [parameter for parameter in player.trainable if parameter.grad is not None]
            )
    try:
        yield
    finally:
        for player in players:
            player.before_step = None


def peak_bytes(spec: RunSpec) -> int | None:
    """Most bytes of live tensors at once; None where `forecast` has none."""
    memory = forecast(spec).memory
    return memory.peak_bytes if memory is not None else None


def largest_batch(spec: RunSpec, limit_bytes: int) -> int | None:
    """The largest batch size whose forecast peak is at most the limit, by doubling and then bisection.

    Never more than the dataset holds. None where even the smallest does not fit, or where there is no forecast.
    """
    most = min(item_count(spec.dataset), _LARGEST_BATCH)

    def peak(batch_size: int) -> int | None:
        return peak_bytes(spec.model_copy(update={"batch_size": batch_size}))

    # BatchNorm on vectors refuses a batch of one.
    smallest = next((size for size in (1, 2) if size <= most and peak(size) is not None), None)
    if smallest is None:
        return None

    def fits(batch_size: int) -> bool:
        needed = peak(batch_size)
        return needed is not None and needed <= limit_bytes

    if not fits(smallest):
        return None
    fitting, too_large = smallest, most + 1
    while fitting < most:
        tried = min(2 * fitting, most)
        if not fits(tried):
            too_large = tried
            break
        fitting = tried
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        if fits(middle):
            fitting = middle
        else:
            too_large = middle
    return fitting


def item_count(dataset: AnyDataset) -> int:
    """How many items the dataset has; only a folder is looked into, and a user's own is read.

    Raises:
        UsageError: the folder is missing, may not be read, or holds no picture; the user's own cannot be read.
    """
    if isinstance(dataset, UserDatasetSpec):
        return _form(dataset).shape[0]
    if isinstance(dataset, PointSpec):
        return dataset.points
    if dataset.name == "folder":
        from ganbench.gan.data.files import root_of
        from ganbench.gan.data.folder import _listing

        return len(_listing(root_of(dataset)))
    return _COUNTS[dataset.name]


@dataclass(frozen=True)
class _Form:
    """All that a forecast knows of data: how many items of which shape and type, and how many classes."""

    shape: tuple[int, ...]
    value_range: tuple[float, float] | None
    bytes_: bool = False
    classes: int = 0

    def stand_in(self, name: str) -> Data:
        """Fake data of that form."""
        import torch

        from ganbench.gan.data import Data

        items = torch.empty(self.shape, dtype=torch.uint8 if self.bytes_ else torch.float32)
        labels = torch.empty(self.shape[0], dtype=torch.int64) if self.classes else None
        return Data(name, items, self.value_range, labels=labels, classes=self.classes)


# Forms of users' datasets that were read already: reading may take long, and arms share their data.
_READ: dict[str, _Form] = {}


def _form(dataset: AnyDataset) -> _Form:
    if isinstance(dataset, UserDatasetSpec):
        key = canonical_json(dataset.model_dump(mode="json"))
        if key not in _READ:
            _READ[key] = _read(dataset)
        return _READ[key]
    if isinstance(dataset, PointSpec):
        return _Form((item_count(dataset), 2), None, classes=_CLASSES[dataset.name])
    shape = (item_count(dataset), dataset.channels, dataset.size, dataset.size)
    if dataset.name == "folder":
        from ganbench.gan.data.files import root_of
        from ganbench.gan.data.folder import _listing, classes_of

        classes = len(classes_of([name for name, _ in _listing(root_of(dataset))]))
    else:
        classes = _CLASSES[dataset.name]
    return _Form(shape, dataset.range, bytes_=True, classes=classes)


def _read(dataset: UserDatasetSpec) -> _Form:
    import torch

    from ganbench.gan.data import load

    data = load(dataset)
    return _Form(tuple(data.items.shape), data.value_range, data.items.dtype == torch.uint8, data.classes)


def forecasts(specs: Sequence[RunSpec]) -> list[Forecast]:
    """The forecast of each, in one process."""
    return [forecast(spec) for spec in specs]


def largest_batches(specs: Sequence[RunSpec], limit_bytes: int) -> list[int | None]:
    """The largest batch of each that fits, in one process."""
    return [largest_batch(spec, limit_bytes) for spec in specs]


def card_bytes() -> int | None:
    """The memory of the first GPU; None without one."""
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory) if torch.cuda.is_available() else None
