"""JSON web tokens for the brokers: HS256 over one secret key, made with the standard library."""

import base64
import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

SECRET_KEY_BYTES = 32
ROLES = ("superuser", "namespace-admin", "client")


def issue(secret_key: bytes, role: str, token_id: str = "") -> str:
    """Return a token that says who its bearer is, and never expires; with an id it differs from others of the role."""
    header = _encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    claims = _encode(json.dumps({"sub": role} | ({"jti": token_id} if token_id else {})).encode())
    signature = hmac.digest(secret_key, f"{header}.{claims}".encode(), hashlib.sha256)
    return f"{header}.{claims}.{_encode(signature)}"


def create_all(directory: Path) -> None:
    """Write a new secret key and a token for each role, readable by their owner only, unless they exist."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if secret_key_file(directory).exists():
        return
    secret_key = secrets.token_bytes(SECRET_KEY_BYTES)
    for role in ROLES:
        _write_private(token_file(directory, role), issue(secret_key, role).encode())
    _write_private(secret_key_file(directory), secret_key)


def secret_key_file(directory: Path) -> Path:
    """Return the file of the key that signs and verifies the tokens."""
    return directory / "secret.key"


def token_file(directory: Path, role: str) -> Path:
    """Return the file of a role's token."""
    return directory / f"{role}.token"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _write_private(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
