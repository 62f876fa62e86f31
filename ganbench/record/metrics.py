"""The one table of metrics: key -> unit, direction, how to print it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """`direction`: -1 less is better, 1 more is better, 0 neither."""

    title: str
    unit: str
    direction: int
    digits: int = 3

    def text(self, value: float) -> str:
        """The value with its significant digits."""
        return f"{value:.{self.digits}g}" if abs(value) < 10**self.digits - 0.5 else f"{value:.0f}"


CURVES: dict[str, Metric] = {
    "loss/g": Metric("generator loss", "", 0),
    "loss/d": Metric("discriminator loss", "", 0),
    "loss/d_real": Metric("discriminator loss on real", "", 0),
    "loss/d_fake": Metric("discriminator loss on fakes", "", 0),
    "score/real": Metric("mean score of real", "", 0),
    "score/fake": Metric("mean score of fakes", "", 0),
    "grad_norm/g": Metric("generator gradient norm", "", 0),
    "grad_norm/d": Metric("discriminator gradient norm", "", 0),
}

COUNTERS = ("rounds", "g_updates", "d_updates", "real_images", "seconds")

FINALS: dict[str, Metric] = {
    "time/round_ms": Metric("time per round", "ms", -1),
    "time/round_ms_p95": Metric("time per round, 95th percentile", "ms", -1),
    "time/g_phase_ms": Metric("time of the G phase", "ms", -1),
    "time/d_phase_ms": Metric("time of the D phase", "ms", -1),
    "time/discarded_g_share": Metric("share of the G phase spent on discarded gradients", "", -1),
    "time/discarded_d_share": Metric("share of the D phase spent on discarded gradients", "", -1),
    "throughput/updates_per_second": Metric("updates per second", "1/s", 1, 4),
    "throughput/images_per_second": Metric("real images per second", "1/s", 1, 4),
    "memory/live_peak_mib": Metric("peak of live tensors", "MiB", -1),
    "memory/live_peak_mib_g_phase": Metric("peak of live tensors in the G phase", "MiB", -1),
    "memory/live_peak_mib_d_phase": Metric("peak of live tensors in the D phase", "MiB", -1),
    "memory/rss_peak_mib": Metric("peak of the process", "MiB", -1, 4),
    "memory/cuda_allocated_peak_mib": Metric("peak of CUDA allocated", "MiB", -1, 4),
    "memory/cuda_reserved_peak_mib": Metric("peak of CUDA reserved", "MiB", -1, 4),
    "memory/cuda_process_mib": Metric("CUDA memory of the process", "MiB", -1, 4),
    "time/train_s": Metric("training time", "s", -1),
    "time/startup_s": Metric("start-up time", "s", -1),
}

QUALITY: dict[str, Metric] = {
    "fd_pixels": Metric("Fréchet distance (pixels)", "", -1),
    "fd_pooled_pixels": Metric("Fréchet distance (pooled pixels)", "", -1),
    "fd_cnn28": Metric("Fréchet distance (CNN for 28×28)", "", -1),
    "fid": Metric("FID (Inception)", "", -1),
    "high_quality_share": Metric("high-quality share", "", 1),
    "modes": Metric("modes", "", 1),
    "modes_20": Metric("modes with ≥ 20 % of their share", "", 1),
    "reverse_kl": Metric("reverse KL", "nat", -1),
    "std_ratio": Metric("spread within modes / true spread", "", 0),
    "coverage": Metric("coverage", "", 1),
    "recall": Metric("recall", "", 1),
}


def quality_metric(name: str) -> Metric:
    """The row of a quality metric; Fréchet distances carry their features in the name, such as `fd_pixels`."""
    if name.startswith("fd_") and name not in QUALITY:
        return Metric(f"Fréchet distance ({name[3:].replace('_', ' ')})", "", -1)
    return QUALITY.get(name) or Metric(name.replace("_", " "), "", 0)


def metric(key: str) -> Metric:
    """The row of any key, `quality/<metric>` included."""
    if key.startswith("quality/"):
        return quality_metric(key.removeprefix("quality/"))
    return (CURVES | FINALS)[key]
