"""Imported by the fork server before it forks: what every run needs, loaded once.

It must not touch CUDA, start threads or draw random numbers.
"""

import contextlib
import gc

import PIL.Image
import threadpoolctl  # noqa: F401
import torch

# The first optimizer that is made loads it, with some 900 modules: two seconds in every run's process.
import torch._dynamo  # noqa: F401

import ganbench.cli
import ganbench.execute.local
import ganbench.gan.session
import ganbench.gan.strategies.base
import ganbench.gan.trainer
import ganbench.measure
import ganbench.quality  # noqa: F401
from ganbench.errors import DatasetError
from ganbench.gan.data.digits import grey_values

# Pillow's file formats are loaded at first use too.
PIL.Image.preinit()
# Parsed here once; without scikit-learn the runs that want them say so.
with contextlib.suppress(DatasetError):
    grey_values()
# What is there now stays for ever: a collection in a run's process neither looks at it nor copies its pages.
gc.collect()
gc.freeze()
