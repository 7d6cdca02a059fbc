"""A connection's credentials, read from Secrets of its own namespace (R3, hazard C60)."""

from __future__ import annotations

import base64
import binascii

from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.backends.admin.credentials import Basic, ClientCertificate, Credentials, Token
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeNotFound
from scalable_topics_operator.cluster.resources import SECRETS
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable


class CredentialsMissing(BackendRefused):
    """A Secret, or a key in it, is not there; the message names it and never what is in it."""


class SecretCredentials:
    """The credentials of one connection; `refresh` reads the Secrets again.

    Args:
        kube: the API server.
        namespace: the connection's namespace, where its Secrets are.
        spec: says which Secrets.
        superuser: whether those of `superuserAuth` are meant.
    """

    def __init__(
        self, kube: KubeClient, namespace: str, spec: ScalableTopicConnectionSpec, *, superuser: bool = False
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._auth = spec.superuser_auth if superuser else spec.auth
        self._tls = spec.tls
        self._current: Credentials | None = None

    async def current(self) -> Credentials:
        """The credentials as last read. Raises CredentialsMissing, BackendUnavailable."""
        return self._current or await self.refresh()

    async def refresh(self) -> Credentials:
        """Read the Secrets again. Raises CredentialsMissing, BackendUnavailable."""
        fresh = await self._read()
        if fresh != self._current:
            self._current = fresh
        return self._current or fresh

    async def _read(self) -> Credentials:
        auth, tls = self._auth, self._tls
        authorization: Token | Basic | None = None
        certificate = None
        if auth is not None and auth.token is not None:
            ref = auth.token.secret_ref
            authorization = Token(_text(await self._secret(ref.name), ref.key, self._where(ref.name)))
        elif auth is not None and auth.basic is not None:
            name = auth.basic.secret_ref.name
            secret = await self._secret(name)
            authorization = Basic(
                _text(secret, auth.basic.username_key, self._where(name)),
                _text(secret, auth.basic.password_key, self._where(name)),
            )
        elif auth is not None and auth.mtls is not None:
            name = auth.mtls.secret_ref.name
            secret = await self._secret(name)
            certificate = ClientCertificate(
                _value(secret, "tls.crt", self._where(name)), _value(secret, "tls.key", self._where(name))
            )
        elif auth is not None and auth.oauth2 is not None:
            raise CredentialsMissing("auth.oauth2 is not supported by this release; use token, basic or mtls")
        ca_pem = None
        if tls.ca_secret_ref is not None:
            ref_name, key = tls.ca_secret_ref.name, tls.ca_secret_ref.key
            ca_pem = _value(await self._secret(ref_name), key, self._where(ref_name))
        return Credentials(authorization, certificate, ca_pem, tls.verify_hostname)

    async def _secret(self, name: str) -> Body:
        try:
            return await self._kube.get(SECRETS, self._namespace, name)
        except KubeNotFound as error:
            raise CredentialsMissing(f"{self._where(name)} does not exist") from error
        except KubeError as error:
            raise BackendUnavailable(f"{self._where(name)} cannot be read: {error.message}") from error

    def _where(self, name: str) -> str:
        return f"Secret {self._namespace}/{name}"


def _value(secret: Body, key: str, where: str) -> bytes:
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        raise CredentialsMissing(f"{where} has no key {key}")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise CredentialsMissing(f"{where} key {key} is not base64") from error


def _text(secret: Body, key: str, where: str) -> str:
    try:
        text = _value(secret, key, where).decode().strip()
    except UnicodeDecodeError:
        raise CredentialsMissing(f"{where} key {key} is not text") from None
    if not text:
        raise CredentialsMissing(f"{where} key {key} is empty")
    return text
