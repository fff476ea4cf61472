"""The key of an agent, as `reveille agent whoami` makes it."""
from __future__ import annotations

import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


class Identity:
    """An ed25519 key under a label. Neither ``repr`` nor ``str`` shows the seed."""

    def __init__(self, label: str, seed_hex: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", label) or not label.strip("."):
            what = "1 to 64 letters, digits, dots, dashes or underscores, and not dots alone"
            raise ValueError(f"label must be {what} (got {label!r})")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", seed_hex):
            raise ValueError("a seed must be 64 hex digits")
        self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed_hex))
        self.label = label
        #: 64 hex digits.
        self.public_key = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        self.did = f"did:matrix:{label}:{self.public_key[:16]}"

    @classmethod
    def from_file(cls, label: str, path: str | Path) -> Identity:
        """The key of a file that holds its seed as 64 hex digits."""
        return cls(label, Path(path).read_text(encoding="ascii").strip())

    def sign(self, message: str) -> str:
        """128 hex digits over the UTF-8 form of a text."""
        return self._key.sign(message.encode()).hex()

    def __repr__(self) -> str:
        return f"Identity({self.did})"
