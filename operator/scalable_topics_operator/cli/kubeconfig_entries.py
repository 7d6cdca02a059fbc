"""What the entries of a kubeconfig may hold, as far as it is used here; the rest is passed over."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalable_topics_operator.cluster.kube_login import NoKubernetes


class Entry(BaseModel):
    """Base of all: names with hyphens, no text taken for a number or the other way round, and nothing shown."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=True,
        frozen=True,
        strict=True,
        extra="ignore",
        hide_input_in_errors=True,
    )

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return []

    @classmethod
    def read(cls, found: Any, what: str) -> Self:
        """Take what a file holds.

        Args:
            found: of the file.
            what: it is, for messages.

        Raises NoKubernetes, which says where something is wrong, but not what stands there: it may be a key.
        """
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise NoKubernetes(f"{what} cannot be used: {where + ': ' if where else ''}{first['msg']}") from None


class Context(Entry):
    """Which cluster is meant, and as whom."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class Cluster(Entry):
    """Where an API server is."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: str | None = None
    tls_server_name: str | None = None


class Variable(Entry):
    """An environment variable of a program."""

    name: str
    value: str


class Program(Entry):
    """A program that gives credentials."""

    api_version: str | None = Field(None, alias="apiVersion")
    command: str | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = Field(None, alias="installHint")
    provide_cluster_info: bool | None = Field(None, alias="provideClusterInfo")


class User(Entry):
    """Credentials, and whose name calls are made in."""

    token: str | None = None
    token_file: str | None = Field(None, alias="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    exec: Program | None = None
    as_user: str | None = Field(None, alias="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
