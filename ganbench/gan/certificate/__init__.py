"""The certificate: which strategies train these networks on the gradients that they claim.

`certify` plays a few rounds of a real session, recomputes the gradient of every update by itself, and compares the
trajectory with that of `detach`.
"""

from __future__ import annotations

from ganbench.gan.certificate.certify import certify

__all__ = ["certify"]
