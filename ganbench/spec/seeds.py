"""Seeds from named parts, so that adding an arm, a network or a stream never shifts another one's numbers."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: str | int) -> int:
    """A seed in [0, 2**63) from a hash of its named parts, the same on every machine and in every process.

    `derive_seed(3, "latents", "generator")` is the stream of generator latents of seed 3. The parts are joined
    with their lengths, so that ("ab", "c") and ("a", "bc") differ.
    """
    text = "".join(f"{len(str(part))}:{part}," for part in parts)
    return int.from_bytes(hashlib.sha256(f"ganbench/seed/1|{text}".encode()).digest()[:8], "big") >> 1
