"""ganbench: a benchmark harness for GAN training in PyTorch."""

__version__ = "0.1.0"
