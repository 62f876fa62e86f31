"""Sample quality: Fréchet distance, coverage, recall and mixture scores, each with the value real data gets.

Nothing here draws from the global random state or records gradients. `PictureEvaluator` and `PointEvaluator`
are what training uses; the pure functions below them can be used alone.
"""

from __future__ import annotations

from ganbench.quality.coordinates import CoordinateEvaluator
from ganbench.quality.evaluator import Evaluator, NonFiniteSamples, PictureEvaluator, PointEvaluator
from ganbench.quality.features import Features, features_for, to_unit_scale
from ganbench.quality.frechet import Moments, frechet_between, frechet_distance
from ganbench.quality.mixture import sample_mixture, score_mixture
from ganbench.quality.neighbours import Neighbourhoods, coverage, recall
from ganbench.quality.picture import picture_of

__all__ = [
    "CoordinateEvaluator",
    "Evaluator",
    "Features",
    "Moments",
    "Neighbourhoods",
    "NonFiniteSamples",
    "PictureEvaluator",
    "PointEvaluator",
    "coverage",
    "features_for",
    "frechet_between",
    "frechet_distance",
    "picture_of",
    "recall",
    "sample_mixture",
    "score_mixture",
    "to_unit_scale",
]
