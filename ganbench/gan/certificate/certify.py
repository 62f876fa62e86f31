"""From a spec to its certificate: rounds under observation, the comparison of every step, the trajectory, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from ganbench.errors import ErrorKind, UsageError, classify
from ganbench.gan.certificate.compare import Estimator, Fault, Finding
from ganbench.gan.certificate.play import Begun, Played, play, reference_play
from ganbench.gan.certificate.reference import ROLES, CannotRepeat
from ganbench.gan.certificate.trajectory import detour, difference, equal
from ganbench.gan.data import Data
from ganbench.gan.pair import Pair
from ganbench.gan.strategies import Strategy
from ganbench.record.certificate import Certificate, Truth
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import REFERENCE, STRATEGIES, Expectation, Verdict

ROUNDS = 3
# Where trainings do not repeat to the bit: how far the end of one may be from that of `detach`, relative to the way
# there. Adam makes steps of full length out of gradients that are nothing but rounding, such as those of a bias before
# BatchNorm; buffers follow at a tenth of that.
_DETOUR = {True: 0.5, False: 0.05}
_TEXT_OF = {torch.float64: "float64", None: "the networks' own type"}
_TRUE = "every step was made of its declared gradient"

# What each fault makes of a strategy, the worst first.
_VERDICT_OF: tuple[tuple[Fault, Verdict], ...] = (
    ("stale", Verdict.STALE),
    ("leftover", Verdict.CONTAMINATED),
    ("real batch edited", Verdict.CONTAMINATED),
    ("unasked", Verdict.CONTAMINATED),
    ("unknown", Verdict.CONTAMINATED),
    ("missing", Verdict.NOT_TRAINED),
    ("other fakes", Verdict.OTHER_ESTIMATOR),
)


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
    choices: list[torch.dtype | None] = [torch.float64, None] if spec.precision == "fp32" else [None]
    begun = Begun.now()
    reason = ""
    for dtype in choices:
        try:
            return _certified(spec, data, device, rounds, strategy, declared, dtype, begun)
        except CannotRepeat as why:
            reason = f"cannot be certified because {why}"
        finally:
            begun.again()
    return Certificate(
        spec=spec, strategy=spec.strategy, ratio=str(spec.ratio), verdict=None, reason=reason, rounds=0,
        expected=str(spec.expected),
    )  # fmt: skip


def _certified(
    spec: RunSpec, data: Data, device: torch.device, rounds: int, strategy: Callable[[Pair], Strategy] | None,
    declared: Estimator, dtype: torch.dtype | None, begun: Begun,
) -> Certificate:  # fmt: skip
    """`detach` first, and then the strategy, both against a reference in `dtype`.

    Raises:
        CannotRepeat: the networks cannot be made or called again as they were.
    """
    plain = spec.model_copy(update={"strategy": REFERENCE, "calibration": False})
    reference, tolerance = reference_play(plain, data, device, rounds, dtype, begun)
    try:
        played = play(
            spec, data, device, rounds, declared, dtype, begun=begun, strategy=strategy, tolerance=tolerance
        )  # fmt: skip
    except UsageError as refused:  # these networks could be used by `detach`
        raise CannotRepeat(str(refused)) from None
    if not equal(played.start, reference.start):
        raise CannotRepeat("the networks get other initial weights each time that they are made")
    if played.error is not None:
        return _certificate(spec, Verdict.RAISES, f"round {played.rounds + 1} raised", played, dtype, tolerance)
    if played.skipped:
        names = " and ".join(ROLES[name] for name in played.skipped)
        raise CannotRepeat(f"every step of the {names} overflowed and was skipped; more rounds may do")
    exact = device.type == "cpu" and not spec.compile
    apart = difference(played.end, reference.end) if reference.error is None else None
    verdict, why = _verdict(played, reference, declared, apart, exact)
    return _certificate(spec, verdict, why, played, dtype, tolerance, trajectory_difference=apart, exact=exact)


def _verdict(
    played: Played, reference: Played, declared: Estimator, apart: float | None, exact: bool
) -> tuple[Verdict, str]:
    if played.unmoved:
        names = " and ".join(ROLES[name] for name in played.unmoved)
        return Verdict.NOT_TRAINED, f"no parameter of the {names} moved in {played.rounds} rounds"
    for fault, verdict in _VERDICT_OF:
        found = [one for one in played.findings if one.fault == fault]
        if found:
            worst = max(found, key=lambda one: one.share)
            return verdict, f"{worst.text} ({len(found)} of {len(played.findings)} steps)"
    if apart is None:
        if declared != "last":
            return Verdict.OTHER_ESTIMATOR, f"{_TRUE}; {REFERENCE} raised, there is no trajectory to compare with"
        raise CannotRepeat(f"{REFERENCE} itself raised: there is no trajectory to compare with")
    if apart == 0:
        return Verdict.SAME, f"{_TRUE}, and all parameters and buffers are bit-equal to those of {REFERENCE}"
    if not exact and declared == "last" and _alike(played, reference):
        return (
            Verdict.SAME,
            f"{_TRUE}, and parameters and buffers differ from those of {REFERENCE} by at most {apart:.2g}: rounding, "
            "which does not repeat to the bit here",
        )
    return Verdict.OTHER_ESTIMATOR, f"{_TRUE}, and the trajectory is another than that of {REFERENCE}"


def _alike(played: Played, reference: Played) -> bool:
    """Whether two trainings with true gradients on the same fakes are one but for rounding: as many random numbers
    drawn, and ends near each other."""
    if played.random is None or reference.random is None or not played.random.equals(reference.random):
        return False
    return all(
        detour(
            played.group(played.end, role, trainable=kind),
            played.group(reference.end, role, trainable=kind),
            played.group(reference.start, role, trainable=kind),
        )
        <= most
        for role in ROLES
        for kind, most in _DETOUR.items()
    )


def _certificate(
    spec: RunSpec, verdict: Verdict, reason: str, played: Played, dtype: torch.dtype | None, tolerance: float,
    *, trajectory_difference: float | None = None, exact: bool = True,
) -> Certificate:  # fmt: skip
    error, kind, text = played.error, None, None
    if error is not None:
        kind = classify(type(error).__name__, str(error))
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    # Another estimator is expected to be true to what it declares.
    untrue = verdict is Verdict.OTHER_ESTIMATOR and any(one.fault for one in played.findings)
    return Certificate(
        spec=spec, strategy=spec.strategy, ratio=str(spec.ratio), verdict=verdict, reason=reason, rounds=played.rounds,
        error_kind=kind, error=text, truth=_truths(played.findings), reference=_TEXT_OF[dtype], tolerance=tolerance,
        trajectory_difference=trajectory_difference, exact=exact, expected=str(spec.expected),
        as_expected=came_out(spec.expected, verdict, kind) and not untrue,
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
