"""Calls to brokers from Spark's driver and executors, which are synchronous (R34)."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from scalable_topics.layout.json_fields import parse_json
from scalable_topics.scrubbing import scrubbed
from scalable_topics_operator.load.statistics import StatisticsTimes

_TIMEOUT_SECONDS = 5.0
_ATTEMPTS = 2
_PAUSE_SECONDS = 0.3
_HOPS = 5
_TRANSIENT = frozenset({429, 502, 503, 504})
_MOST_BYTES = 512 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_MOST_TEXT = 64 * 1024
_BROKERS_PATH = "/admin/v2/brokers"
_SETTINGS_PATH = "/admin/v2/brokers/configuration/runtime"
_LOADS_PATH = "/admin/v2/broker-stats/topics"


class BrokerSilent(Exception):
    """A broker gave no usable answer; the message says which and why, and holds no secret."""


class _AnyHostname(HTTPAdapter):
    """Takes a certificate of any name that a trusted authority has signed."""

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        super().init_poolmanager(*arguments, **settings, assert_hostname=False)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    location: str
    body: bytes


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """How the brokers of one Pulsar cluster are reached.

    Secrets are named by their files, which are read anew for every call: options of a data source appear in plans and
    in Spark's UI, and tokens are rotated.

    Args:
        admin_url: http(s) URL of a broker or of a service in front of them.
        token_file: file with a superuser's token; empty for none.
        ca_file: certificates that servers are checked against; empty for the system's.
        certificate_file: client certificate, PEM; empty for none.
        key_file: its private key, PEM; empty where the certificate's file holds it, too.
        timeout_seconds: bound of connecting, of each wait and of the whole answer; > 0.
        verify_hostname: False accepts a certificate of another name; the chain is still checked.

    Raises ValueError for a URL that cannot be used, a timeout that is none, or a key without a certificate.
    """

    admin_url: str
    token_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    timeout_seconds: float = _TIMEOUT_SECONDS
    verify_hostname: bool = True

    def __post_init__(self) -> None:
        parts = urlsplit(self.admin_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            raise ValueError("adminUrl must be http(s)://HOST:PORT, without credentials and query")
        if not self.timeout_seconds > 0:
            raise ValueError("timeoutSeconds must be greater than 0")
        if self.key_file and not self.certificate_file:
            raise ValueError("keyFile is given without certificateFile: a key proves nothing without its certificate")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Read the options of the data source: those of `options`, of which only adminUrl must be given.

        Their names are told apart without regard to case, as Spark does. Raises ValueError.
        """
        found = {name.lower(): value for name, value in options.items()}
        if "adminurl" not in found:
            raise ValueError("option adminUrl is missing: the address of a broker, such as http://pulsar-broker:8080")
        try:
            timeout_seconds = float(found.get("timeoutseconds", _TIMEOUT_SECONDS))
        except ValueError:
            raise ValueError(f"option timeoutSeconds is no number: {found['timeoutseconds']!r}") from None
        return cls(
            admin_url=found["adminurl"],
            token_file=found.get("tokenfile", ""),
            ca_file=found.get("cafile", ""),
            certificate_file=found.get("certificatefile", ""),
            key_file=found.get("keyfile", ""),
            timeout_seconds=timeout_seconds,
            verify_hostname=_boolean("verifyHostname", found.get("verifyhostname", "true")),
        )

    def options(self) -> dict[str, str]:
        """The same as options of the data source: paths of secrets, no secret."""
        return {
            "adminUrl": self.admin_url,
            "tokenFile": self.token_file,
            "caFile": self.ca_file,
            "certificateFile": self.certificate_file,
            "keyFile": self.key_file,
            "timeoutSeconds": str(self.timeout_seconds),
            "verifyHostname": str(self.verify_hostname).lower(),
        }

    def brokers(self) -> tuple[str, ...]:
        """`host:port` of the active brokers, sorted. Raises BrokerSilent."""
        found = self._get(self.admin_url.rstrip("/"), _BROKERS_PATH)
        if not isinstance(found, list):
            raise BrokerSilent(f"{self.admin_url}: its list of brokers is no list")
        return tuple(sorted(str(broker) for broker in found))

    def statistics_times(self) -> StatisticsTimes:
        """When brokers renew their statistics. Raises BrokerSilent."""
        found = self._get(self.admin_url.rstrip("/"), _SETTINGS_PATH)
        return StatisticsTimes.of(found if isinstance(found, dict) else {})

    def topic_loads(self, broker: str) -> dict[str, Any]:
        """What one broker, `host:port`, says of all its topics. Raises BrokerSilent."""
        found = self._get(f"{urlsplit(self.admin_url).scheme}://{broker}", _LOADS_PATH)
        if not isinstance(found, dict):
            raise BrokerSilent(f"{broker}: its statistics are no JSON object")
        return found

    def send(self, method: str, path: str, body: Any = None, *, allow: frozenset[int] = frozenset()) -> Any:
        """Send one call to the admin URL and on to the broker it names, if that one is listed; answers what it says.

        Args:
            method: of HTTP; the call must be one that may be repeated.
            path: of the admin API.
            body: sent as JSON.
            allow: statuses that are as good as success.

        Raises BrokerSilent.
        """
        url = self.admin_url.rstrip("/") + path
        for _ in range(_HOPS):
            answer = self._retried(method, url, body)
            if answer.status != requests.codes.temporary_redirect:
                break
            url = answer.location
            try:
                parts = urlsplit(url)
            except ValueError:
                raise BrokerSilent(f"{method} {path}: it redirects to what is no address") from None
            if parts.netloc not in self.brokers() or parts.scheme != urlsplit(self.admin_url).scheme:
                raise BrokerSilent(f"{method} {path}: it redirects to {parts.netloc}, which is no listed broker")
        text = answer.body.decode("utf-8", "replace")
        if answer.status // 100 != 2 and answer.status not in allow:
            # It may say again what it was sent.
            said = scrubbed(text[:_MOST_TEXT], self._secrets())
            raise BrokerSilent(f"{method} {url}: it answered {answer.status}: {said[:200]}")
        return _parsed(text)

    def _get(self, server: str, path: str) -> Any:
        # A broker answers for itself; whoever redirects would be sent the token.
        answer = self._retried("GET", server + path, None)
        if answer.status != requests.codes.ok:
            raise BrokerSilent(f"{server}{path}: it answered {answer.status}")
        try:
            return parse_json(answer.body)
        except ValueError:
            raise BrokerSilent(f"{server}{path}: what it answered is no JSON") from None

    def _retried(self, method: str, url: str, body: Any) -> _Answer:
        """Once more where nothing was heard at all or soon: a broker that hangs has had its time."""
        for attempt in range(1, _ATTEMPTS + 1):
            is_last = attempt == _ATTEMPTS
            try:
                answer = self._exchange(method, url, body)
                if is_last or answer.status not in _TRANSIENT:
                    return answer
            except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
                if is_last or not isinstance(error, requests.ConnectionError) or isinstance(error, requests.Timeout):
                    # What the library says may quote the request.
                    raise BrokerSilent(f"{method} {url}: {_plain(error)}") from None
            time.sleep(random.uniform(0.5, 1.0) * _PAUSE_SECONDS)
        raise AssertionError("unreachable")

    def _exchange(self, method: str, url: str, body: Any) -> _Answer:
        deadline = time.monotonic() + self.timeout_seconds
        with (
            self._session() as session,
            session.request(
                method,
                url,
                json=body,
                headers=self._headers(),
                timeout=self.timeout_seconds,
                verify=self.ca_file or True,
                cert=self._certificate(),
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            chunks, size = [], 0
            # What has come, not a whole chunk: else a broker that trickles would be waited for for ever.
            while chunk := answer.raw.read1(_CHUNK_BYTES, decode_content=True):
                size += len(chunk)
                if time.monotonic() > deadline:
                    raise BrokerSilent(f"{method} {url}: no whole answer within {self.timeout_seconds:g} s")
                if size > _MOST_BYTES:
                    raise BrokerSilent(f"{method} {url}: its answer is longer than {_MOST_BYTES} bytes")
                chunks.append(chunk)
            return _Answer(answer.status_code, answer.headers.get("Location", ""), b"".join(chunks))

    def _session(self) -> requests.Session:
        session = requests.Session()
        if not self.verify_hostname:
            session.mount("https://", _AnyHostname())
        return session

    def _certificate(self) -> str | tuple[str, str] | None:
        if not self.key_file:
            return self.certificate_file or None
        return self.certificate_file, self.key_file

    def _secrets(self) -> list[str]:
        return [one.partition(" ")[2] for one in self._headers().values()]

    def _headers(self) -> dict[str, str]:
        if not self.token_file:
            return {}
        return {"Authorization": f"Bearer {Path(self.token_file).read_text(encoding='utf-8').strip()}"}


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"option {name} is neither true nor false: {text!r}")
    return text.lower() == "true"


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _plain(error: Exception) -> str:
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not accepted"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return "its answer ended too early"
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} does not exist"
    return type(error).__name__
