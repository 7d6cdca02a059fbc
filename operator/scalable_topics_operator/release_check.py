"""Whether an installed operator does its work, as seen from another pod: run by `helm test`.

`python -m scalable_topics_operator.release_check --metrics URL --gateway URL --token-file FILE [--certificate FILE]`
"""

from __future__ import annotations

import argparse
import asyncio
import random
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.cluster.resources import TOPICS

_SECONDS = 60.0
# A pod that has just begun may be unknown to what guards the others' network for a moment.
_TRIES = 5
_FIRST_PAUSE_SECONDS = 0.5
_CALL_SECONDS = 8.0
# No name of a topic that anybody has.
_NOBODYS = "/admin/v2/scalable/helm-test/nobodys/topic/stats"


class NotWorking(Exception):
    """Something does not answer as it should; the message says what."""


async def check(
    metrics: str, gateway: str, token: str, trusted: ssl.SSLContext | None, namespaces: Sequence[str]
) -> None:
    """Ask the operator's pages, its gateway and the API server, and say what was found. Raises NotWorking, KubeError.

    Args:
        metrics: URL of the metrics and health page.
        gateway: URL of the gateway.
        token: for audience `scalable-topics`.
        trusted: how the gateway proves who it is; None for plain HTTP.
        namespaces: where ScalableTopics are listed; empty for everywhere.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_CALL_SECONDS)) as session:
        for page in ("/readyz", "/healthz", "/metrics"):
            await expect(session, metrics + page, 200)
        # That a caller is known and told that there is no such topic takes the operator's right to review tokens.
        await expect(session, gateway + _NOBODYS, 401, trusted)
        await expect(session, gateway + _NOBODYS, 404, trusted, {"Authorization": f"Bearer {token}"})
    places: Sequence[str | None] = list(namespaces) or [None]
    async with KubeClient(tries=2) as kube:
        for namespace in places:
            topics = await kube.list_all(TOPICS, namespace)
            print(f"{len(topics)} ScalableTopic(s) in {namespace or 'all namespaces'}")


async def expect(
    session: aiohttp.ClientSession,
    url: str,
    status: int,
    trusted: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Ask for a page, again while nobody answers, and say that it was answered as it should be. Raises NotWorking.

    Args:
        session: what asks.
        url: of the page.
        status: the one answer that is right.
        trusted: how the server proves who it is; None for plain HTTP.
        headers: of the request.
    """
    found, text = await _answer(session, url, trusted, headers)
    if found != status:
        raise NotWorking(f"{url} answers {found}, not {status}: {text[:300]}")
    print(f"{url}: {status}, as it should be")


def trust(certificate: Path) -> ssl.SSLContext:
    """Trust a certificate itself, whoever has signed it and whatever names it bears. Raises OSError."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; answers 1 when it fails."""
    parser = argparse.ArgumentParser(description="Ask an installed operator whether it does its work.")
    parser.add_argument("--metrics", required=True, help="URL of the metrics and health page")
    parser.add_argument("--gateway", required=True, help="URL of the gateway")
    parser.add_argument("--token-file", required=True, type=Path, help="token for audience scalable-topics")
    parser.add_argument("--certificate", type=Path, help="PEM file of the gateway's certificate, where it has one")
    parser.add_argument("--namespaces", default="", help="where to list topics, separated by commas; all if empty")
    options = parser.parse_args(arguments)
    try:
        token = options.token_file.read_text().strip()
        trusted = trust(options.certificate) if options.certificate else None
        namespaces = [name for name in options.namespaces.split(",") if name]
        asyncio.run(_check_in_time(options.metrics, options.gateway, token, trusted, namespaces))
    except (NotWorking, KubeError, NoKubernetes, OSError) as error:
        print(f"failed: {error or 'no answer in time'}")
        return 1
    return 0


async def _check_in_time(
    metrics: str, gateway: str, token: str, trusted: ssl.SSLContext | None, namespaces: Sequence[str]
) -> None:
    async with asyncio.timeout(_SECONDS):
        await check(metrics, gateway, token, trusted, namespaces)


async def _answer(
    session: aiohttp.ClientSession, url: str, trusted: ssl.SSLContext | None, headers: Mapping[str, str] | None
) -> tuple[int, str]:
    attempt = 0
    while True:
        attempt += 1
        try:
            async with session.get(url, ssl=trusted or True, headers=headers) as response:
                return response.status, await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            if attempt >= _TRIES:
                raise NotWorking(f"{url}: {error or 'no answer in time'}") from error
            await asyncio.sleep(random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))


if __name__ == "__main__":
    sys.exit(main())
