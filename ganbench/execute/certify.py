"""The certificate of one arm, made in a process of its own: a network that kills its process kills nothing else.

torch's floor is imported inside the functions: the parent imports this module too, and never loads torch.
"""

from __future__ import annotations

from ganbench.errors import DeviceUnavailable, UsageError
from ganbench.execute.discarded import discarded_time
from ganbench.execute.local import LocalExecutor
from ganbench.execute.memory import memory_of
from ganbench.record.certificate import Certificate
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict

LONGEST_S = 600.0


def certificate_of(executor: LocalExecutor, spec: RunSpec, rounds: int) -> Certificate:
    """The certificate, over so many rounds, of a spec whose device and dataset are settled; where its process died or
    hung, that it cannot be certified.

    Raises:
        UsageError: networks or data cannot be used.
    """
    found = executor.ask(certified, spec, rounds, timeout=LONGEST_S)
    if found is not None:
        return found
    reason = f"cannot be certified because its process died, or took more than {LONGEST_S:g} s"
    return _none(spec, reason)


def certified(spec: RunSpec, rounds: int) -> Certificate:
    """In the process: the certificate with what is computed for nothing beside it.

    Raises:
        UsageError: networks or data cannot be used.
    """
    import torch

    from ganbench.gan.certificate import certify
    from ganbench.gan.data import load
    from ganbench.gan.session import Session, device_for
    from ganbench.measure import clock_for

    torch.set_num_threads(spec.threads)
    try:
        device = device_for(spec.device)
    except DeviceUnavailable as error:
        return _none(spec, f"cannot be certified because {error}")
    data = load(spec.dataset)
    found = certify(spec, data, device, rounds=rounds)
    if found.verdict in (None, Verdict.RAISES) or spec.compile:
        return found
    try:
        session = Session(spec, data, device)
        session.play_round()
        memory = memory_of(session)
        discarded = any(memory.discarded_gradient_bytes.values())
        shares = discarded_time(session, clock_for(device)) if discarded else {"g": 0.0, "d": 0.0}
    except UsageError:
        raise
    except Exception:  # noqa: BLE001 - a network that a dispatch mode breaks has been certified all the same
        return found
    return found.model_copy(
        update={
            "discarded_gradient_bytes": memory.discarded_gradient_bytes,
            "discarded_time_share": shares,
            "retained_graph_bytes": memory.retained_graph_bytes,
        }
    )


def _none(spec: RunSpec, reason: str) -> Certificate:
    return Certificate(
        spec=spec,
        strategy=spec.strategy,
        ratio=str(spec.ratio),
        verdict=None,
        reason=reason,
        rounds=0,
        expected=str(spec.expected),
    )
