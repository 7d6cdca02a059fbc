"""A small blocking client of the Pulsar admin API, for setting up and looking at the local brokers."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dev.errors import DevError

REQUEST_TIMEOUT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker answered.

    Attributes:
        status: HTTP status code; redirects are not followed.
        body: the body as text.
        location: where a redirect points, else None.
    """

    status: int
    body: str
    location: str | None

    def json(self) -> Any:
        """Return the body, decoded."""
        return json.loads(self.body)


class PulsarAdmin:
    """The admin API of one broker, as one role.

    Args:
        url: address of the broker's web service.
        token: the role's token; None asks without one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._address = urlsplit(url).netloc
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: Any = None, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS) -> Answer:
        """Make one request and return the answer, whatever its status.

        Args:
            method: HTTP method.
            path: below `/admin/v2/`.
            body: sent as JSON unless None.
            timeout_seconds: for each network operation.

        Raises:
            DevError: no answer came.
        """
        data = None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection(self._address, timeout=timeout_seconds)
        try:
            connection.request(method, f"/admin/v2/{path}", body=data, headers=self._headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            return Answer(response.status, text, response.headers["Location"])
        except (http.client.HTTPException, OSError) as error:
            raise DevError(f"{method} {self._url}/admin/v2/{path} got no answer: {error}") from None
        finally:
            connection.close()

    def create(self, path: str, body: Any = None) -> None:
        """Create something with PUT; one that is there already is left as it is.

        Raises:
            DevError: the broker refused.
        """
        self._expect({200, 204, 409}, "PUT", path, body)

    def post(self, path: str, body: Any = None) -> None:
        """Post something.

        Raises:
            DevError: the broker refused.
        """
        self._expect({200, 204}, "POST", path, body)

    def _expect(self, statuses: set[int], method: str, path: str, body: Any) -> None:
        answer = self.ask(method, path, body)
        if answer.status not in statuses:
            raise DevError(f"{method} {path} answered {answer.status}: {answer.body[:300]}")
