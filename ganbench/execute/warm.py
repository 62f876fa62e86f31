"""Imported by the fork server before it forks: what every run needs, loaded once.

It must not touch CUDA, start threads or draw random numbers.
"""

import PIL.Image  # noqa: F401
import torch  # noqa: F401

import ganbench.cli
import ganbench.gan.session
import ganbench.gan.strategies.base
import ganbench.gan.trainer
import ganbench.measure
import ganbench.quality  # noqa: F401
