"""What proves who we are to a Pulsar cluster, as values that never show their secrets."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token (JWT or OAuth2 access token)."""

    value: str = field(repr=False)

    def header(self) -> str:
        """The `Authorization` header."""
        return f"Bearer {self.value}"

    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown anywhere."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Basic:
    """A user name and a password."""

    username: str
    password: str = field(repr=False)

    def header(self) -> str:
        """The `Authorization` header."""
        return "Basic " + self._encoded()

    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown anywhere."""
        return (self.password, self._encoded())

    def _encoded(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its private key, both PEM."""

    chain_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """All the material for talking to one cluster. The default is an anonymous caller and the system's CAs.

    Args:
        authorization: goes into the `Authorization` header.
        certificate: client certificate for mutual TLS.
        trusted_ca_pem: CA bundle that replaces the system's.
        verify_hostname: False accepts a certificate of another name; the chain is still checked.
    """

    authorization: Token | Basic | None = None
    certificate: ClientCertificate | None = None
    trusted_ca_pem: bytes | None = field(default=None, repr=False)
    verify_hostname: bool = True

    def headers(self) -> dict[str, str]:
        """Headers that carry the credentials."""
        return {} if self.authorization is None else {"Authorization": self.authorization.header()}

    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown anywhere."""
        return () if self.authorization is None else self.authorization.secrets()

    def ssl_context(self) -> ssl.SSLContext:
        """A TLS client context with this material; does file I/O, call it off the event loop.

        Raises ValueError, without any part of the material, when it cannot be used.
        """
        try:
            cadata = None if self.trusted_ca_pem is None else self.trusted_ca_pem.decode("ascii")
            context = ssl.create_default_context(cadata=cadata)
        except (ssl.SSLError, ValueError):
            raise ValueError("the trusted CA bundle is not PEM that can be read") from None
        context.check_hostname = self.verify_hostname
        if self.certificate is not None:
            _load_certificate(context, self.certificate)
        return context


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # ssl reads a key only from a file: mkstemp makes it 0600 and it is gone before this returns.
    handle, name = tempfile.mkstemp(prefix="stconn-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.key_pem.rstrip() + b"\n" + certificate.chain_pem)
        # A callback, so that an encrypted key is an error and never a prompt on the terminal.
        context.load_cert_chain(name, password=lambda: b"")
    except (ssl.SSLError, ValueError, OSError):
        raise ValueError("the client certificate and key cannot be used") from None
    finally:
        Path(name).unlink(missing_ok=True)


class CredentialSource(Protocol):
    """Where credentials come from, for example a Kubernetes Secret that may be rotated (hazard C60)."""

    async def current(self) -> Credentials:
        """The credentials as known now; cheap, called for every request."""

    async def refresh(self) -> Credentials:
        """Read the credentials again from where they are kept; called when the cluster refused them."""


@dataclass(frozen=True, slots=True)
class FixedCredentials:
    """A source whose credentials never change."""

    credentials: Credentials = field(default_factory=Credentials)

    async def current(self) -> Credentials:
        """The credentials."""
        return self.credentials

    async def refresh(self) -> Credentials:
        """The same credentials."""
        return self.credentials
