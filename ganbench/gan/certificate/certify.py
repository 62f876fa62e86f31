"""From a spec to its certificate: rounds under observation, the comparison of every step, the trajectory, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor

from ganbench.errors import ErrorKind, UsageError, classify
from ganbench.gan.certificate.compare import Comparison, Estimator, Fault, Finding
from ganbench.gan.certificate.observe import Observer
from ganbench.gan.certificate.reference import ROLES, CannotRepeat, Reference
from ganbench.gan.data import Data
from ganbench.gan.pair import Pair
from ganbench.gan.session import Session
from ganbench.gan.strategies import Strategy
from ganbench.record.certificate import Certificate, Truth
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import REFERENCE, STRATEGIES, Expectation, Verdict

ROUNDS = 3
# Share up to which float32 and float64 may differ by rounding alone. Where `detach` itself is further off (deep
# networks, reduced precision), ten times that, but never more than the last.
TOLERANCE, MOST = 1e-4, 1e-2
# By how much a repeated output may differ from the watched one: in float64, and in the networks' own type.
_SLACK = {torch.float64: 1e-3, None: 1e-5}
_SLACK_OF_COMPILED = 1e-3
_TEXT_OF = {torch.float64: "float64", None: "the networks' own type"}

# What each fault makes of a strategy, the worst first.
_VERDICT_OF: tuple[tuple[Fault, Verdict], ...] = (
    ("stale", Verdict.STALE),
    ("leftover", Verdict.CONTAMINATED),
    ("real batch edited", Verdict.CONTAMINATED),
    ("unknown", Verdict.CONTAMINATED),
    ("missing", Verdict.NOT_TRAINED),
    ("other fakes", Verdict.OTHER_ESTIMATOR),
)


@dataclass
class _Played:
    """A session after its rounds."""

    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    error: BaseException | None = None
    unmoved: list[str] = field(default_factory=list)
    state: dict[str, Tensor] = field(default_factory=dict)


def certify(
    spec: RunSpec,
    data: Data,
    device: torch.device,
    *,
    rounds: int = ROUNDS,
    strategy: Callable[[Pair], Strategy] | None = None,
    estimator: Estimator | None = None,
) -> Certificate:
    """The certificate of a spec's strategy with its networks, loss, optimizers, ratio, precision and device.

    `strategy` takes the place of the spec's own: one that is not in the table, with the `estimator` that it declares.

    Raises:
        UsageError: networks or data cannot be used.
    """
    declared = estimator or _estimator_of(spec.strategy)
    try:
        dtype, tolerance, reference = _reference_run(spec, data, device, rounds)
        played = _play(spec, data, device, rounds, strategy, declared, dtype, tolerance)
    except CannotRepeat as reason:
        return _certificate(spec, None, f"cannot be certified because {reason}", rounds=0)
    if played.error is not None:
        kind = classify(type(played.error).__name__, str(played.error))
        text = f"{type(played.error).__name__}: {(str(played.error).splitlines() or [''])[0]}"
        return _certificate(
            spec, Verdict.RAISES, f"round {played.rounds + 1} raised", rounds=played.rounds, error_kind=kind,
            error=text, truth=_truths(played.findings), reference=_TEXT_OF[dtype], tolerance=tolerance,
        )  # fmt: skip
    difference = _difference(played.state, reference.state) if reference.error is None else None
    exact = device.type == "cpu" and not spec.compile
    verdict, why = _verdict(played, difference, exact, tolerance)
    return _certificate(
        spec, verdict, why, rounds=played.rounds, truth=_truths(played.findings), reference=_TEXT_OF[dtype],
        tolerance=tolerance, trajectory_difference=difference, exact=exact,
    )  # fmt: skip


def _reference_run(
    spec: RunSpec, data: Data, device: torch.device, rounds: int
) -> tuple[torch.dtype | None, float, _Played]:
    """`detach` first: whether float64 repeats what the networks do, and how far rounding alone is off."""
    own = spec.model_copy(update={"strategy": REFERENCE, "calibration": False})
    choices: list[torch.dtype | None] = [torch.float64, None] if spec.precision == "fp32" else [None]
    for dtype in choices:
        try:
            played = _play(own, data, device, rounds, None, "last", dtype, TOLERANCE)
        except CannotRepeat:
            if dtype is choices[-1]:
                raise
            continue
        true = [one.share for one in played.findings if one.share < MOST]
        return dtype, min(MOST, max(TOLERANCE, 10 * max(true, default=0.0))), played
    raise AssertionError("there is always a type to try")


def _play(
    spec: RunSpec, data: Data, device: torch.device, rounds: int, strategy: Callable[[Pair], Strategy] | None,
    estimator: Estimator, dtype: torch.dtype | None, tolerance: float,
) -> _Played:  # fmt: skip
    """Play rounds and compare each; an error of the training is kept, one of the comparison passes through."""
    session = Session(spec, data, device)
    if strategy is not None:
        session.strategy = strategy(session.pair)
    slack = _SLACK_OF_COMPILED if spec.compile or device.type == "cuda" else _SLACK[dtype]
    comparison = Comparison(session, Reference(spec, data.shape, device, dtype, slack), estimator)
    observer = Observer(session)
    before = _state(session, trainable=True)
    found = _Played()
    for _ in range(rounds):
        try:
            with observer.watching():
                observer.play_round()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a strategy's training raises is its verdict
            found.error = error.with_traceback(None)
            observer.steps.clear()
            break
        found.rounds += 1
        found.findings += comparison.findings(observer.steps, observer.forwards, tolerance)
        observer.steps.clear()
        observer.forwards.clear()
    found.state = _state(session)
    after = _state(session, trainable=True)
    for name in ROLES:
        own = [key for key in before if key.startswith(f"{name}.")]
        if all(torch.equal(before[key], after[key]) for key in own):
            found.unmoved.append(name)
    return found


def _verdict(played: _Played, difference: float | None, exact: bool, tolerance: float) -> tuple[Verdict, str]:
    if played.unmoved:
        names = " and ".join(ROLES[name] for name in played.unmoved)
        return Verdict.NOT_TRAINED, f"no parameter of the {names} moved in {played.rounds} rounds"
    for fault, verdict in _VERDICT_OF:
        found = [one for one in played.findings if one.fault == fault]
        if found:
            worst = max(found, key=lambda one: one.share)
            return verdict, f"{worst.text} ({len(found)} of {len(played.findings)} steps)"
    true = "every step was made of its declared gradient"
    if difference is None:
        return Verdict.OTHER_ESTIMATOR, f"{true}; detach has no trajectory to compare with"
    if difference == 0:
        return Verdict.SAME, f"{true}, and all parameters and buffers are bit-equal to those of detach"
    if not exact and difference <= tolerance:
        return (
            Verdict.SAME,
            f"{true}, and parameters and buffers differ from those of detach by at most {difference:.2g}",
        )
    return Verdict.OTHER_ESTIMATOR, f"{true}, and the trajectory is another than that of detach"


def _certificate(
    spec: RunSpec, verdict: Verdict | None, reason: str, *, rounds: int, error_kind: ErrorKind | None = None,
    error: str | None = None, truth: dict[str, Truth] | None = None, reference: str = "", tolerance: float = 0.0,
    trajectory_difference: float | None = None, exact: bool = True,
) -> Certificate:  # fmt: skip
    return Certificate(
        spec=spec, strategy=spec.strategy, ratio=str(spec.ratio), verdict=verdict, reason=reason, rounds=rounds,
        error_kind=error_kind, error=error, truth=truth or {}, reference=reference, tolerance=tolerance,
        trajectory_difference=trajectory_difference, exact=exact, expected=str(spec.expected),
        as_expected=came_out(spec.expected, verdict, error_kind),
    )  # fmt: skip


def came_out(expected: Expectation, verdict: Verdict | None, error_kind: ErrorKind | None) -> bool:
    """Whether a verdict is what the table of strategies expects; the reference is expected to be the same as itself."""
    if verdict is None:
        return False
    if expected.verdict is Verdict.TO_BE_JUDGED:
        return verdict is not Verdict.RAISES
    if expected.verdict is Verdict.RAISES:
        return verdict is Verdict.RAISES and error_kind is expected.error_kind
    return verdict is (Verdict.SAME if expected.verdict is Verdict.REFERENCE else expected.verdict)


def _truths(findings: list[Finding]) -> dict[str, Truth]:
    truths = {}
    for name in ROLES:
        own = [one for one in findings if one.player == name]
        untrue = [one.share for one in own if one.fault is not None]
        if own:
            truths[name] = Truth(
                updates=len(own),
                untrue=len(untrue),
                worst_share=max(one.share for one in own),
                median_share=median(untrue) if untrue else 0.0,
                missing=sum(one.fault == "missing" for one in own),
            )
    return truths


def _estimator_of(strategy: str) -> Estimator:
    row = STRATEGIES[strategy]
    if row.own_latents:
        return "fresh"
    return "replay" if row.g_first.verdict is Verdict.OTHER_ESTIMATOR else "last"


def _state(session: Session, *, trainable: bool = False) -> dict[str, Tensor]:
    found = {}
    for player in (session.pair.g, session.pair.d):
        tensors = player.module.named_parameters() if trainable else player.module.state_dict(keep_vars=True).items()
        for key, tensor in tensors:
            if not trainable or tensor.requires_grad:
                found[f"{player.name}.{key}"] = tensor.detach().clone()
    return found


def _difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest absolute difference of any element; NaN counts as infinitely far. Counters, such as BatchNorm's of
    batches, count where nothing else differs: a difference of theirs has another unit."""
    worst = {True: 0.0, False: 0.0}
    for key, tensor in one.items():
        if torch.equal(tensor, other[key]):
            continue
        apart = float((tensor.double() - other[key].double()).abs().max())
        real = tensor.is_floating_point()
        worst[real] = max(worst[real], apart if apart == apart else float("inf"))
    return worst[True] or worst[False]
