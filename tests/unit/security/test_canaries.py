"""A secret that everybody would recognise stands wherever a user may put one, and shows itself nowhere.

Those it is sent to say it again in every form they can: as it is, quoted as in addresses, JSON and pages, in base64.
"""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import assume, given
from hypothesis import strategies as st

from scalable_topics.admin import AdminClient, AdminError, GatewayOptions
from scalable_topics.scrubbing import INSTEAD, scrubbed
from scalable_topics_operator.backends.admin import (
    AdminHttp,
    ClientCertificate,
    Credentials,
    FixedCredentials,
    HttpSettings,
    RetryPolicy,
    Token,
)
from scalable_topics_operator.backends.admin.credentials import Basic
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.telemetry.logs import JsonFormatter
from segment_load.broker_access import BrokerAccess, BrokerSilent
from tests.support import canaries
from tests.support.canaries import FORMS
from tests.support.hostile import fuzzing, randomness
from tests.unit.backends.scripted_server import serve

CANARY = 'canary-4711/+=?&"<é>'.encode("ascii", "ignore").decode() + "zzz"
PROOFS = (Credentials(Token(CANARY)), Credentials(Basic("user", CANARY)))


def forms_in(text: str) -> list[str]:
    """By which names the canary is in a text."""
    return canaries.forms_in(text, CANARY)


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_others_are_scrubbed_of_it(form: str) -> None:
    said = FORMS[form](CANARY)
    for text in (said, f"no: {said}, again {said}", f'{{"reason": "{said}"}}', f"<td>{said}</td>"):
        found = scrubbed(text, [CANARY])
        assert forms_in(found) == []
        assert INSTEAD in found
    assert scrubbed("nothing of it", [CANARY, "", "a"]) == "nothing of it"


@fuzzing(300)
@given(randomness, st.text(min_size=4, max_size=30))
def test_secrets_of_any_letters_are_scrubbed(rng: random.Random, secret: str) -> None:
    try:
        said = rng.choice(list(FORMS.values()))(secret)
    except UnicodeEncodeError:
        said = secret
    assume(secret not in f"x {INSTEAD} y")
    assert secret not in scrubbed(f"x {said} y", [secret])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("proof", PROOFS, ids=["token", "password"])
async def test_brokers_say_it_again(proof: Credentials, form: str, caplog: pytest.LogCaptureFixture) -> None:
    said = FORMS[form](CANARY)
    answers = [
        ("application/json", json.dumps({"reason": f"role {said} may not"})),
        ("text/html", f"<html><title>Error 401 {said}</title></html>"),
        ("text/plain", f"java.lang.RuntimeException: {said}\n\tat a.b"),
    ]
    caplog.set_level(logging.DEBUG)
    for status in (401, 403, 409, 500):
        for content_type, body in answers:

            async def reply(
                _: web.Request, status: int = status, content_type: str = content_type, body: str = body
            ) -> web.Response:
                return web.Response(status=status, text=body, content_type=content_type)

            async with serve(reply) as server:
                settings = HttpSettings(server.url, retry=RetryPolicy(attempts=1))
                async with AdminHttp(settings, FixedCredentials(proof)) as http:
                    with pytest.raises(BackendError) as refusal:
                        await PulsarAdmin(http).topics.properties("persistent://t/n/x")
            assert forms_in(str(refusal.value)) == []
    assert forms_in(caplog.text) == []


@pytest.mark.parametrize("form", FORMS)
async def test_a_gateway_says_it_again(form: str) -> None:
    async def reply(_: web.Request) -> web.Response:
        said = FORMS[form](CANARY)
        return web.json_response({"reason": f"no {said}", "manifest": f"kind: A\nx: {said}\n"}, status=405)

    async with serve(reply) as server, AdminClient(GatewayOptions(server.url, token=CANARY)) as client:
        with pytest.raises(AdminError) as refusal:
            await client.get_topic("topic://a/b/c")
    assert forms_in(f"{refusal.value} {refusal.value.manifest} {refusal.value!r}") == []


@pytest.mark.parametrize("form", FORMS)
async def test_brokers_say_it_again_to_the_pipeline(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from segment_load import broker_access

    (tmp_path / "token").write_text(CANARY + "\n")
    answer = broker_access._Answer(403, "", f"no {FORMS[form](CANARY)}".encode())
    monkeypatch.setattr(BrokerAccess, "_exchange", lambda self, method, url, body: answer)
    access = BrokerAccess("http://b:1", token_file=str(tmp_path / "token"))
    with pytest.raises(BrokerSilent) as refusal:
        access.send("GET", "/admin/v2/x")
    assert forms_in(str(refusal.value)) == []
    assert forms_in(json.dumps(access.options()) + repr(access)) == []


def test_material_that_cannot_be_used_is_not_shown() -> None:
    pem = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n".encode()
    for credentials in (
        Credentials(certificate=ClientCertificate(pem, pem)),
        Credentials(trusted_ca_pem=pem),
        Credentials(trusted_ca_pem=b"\xff" + pem),
    ):
        with pytest.raises(ValueError, match=r"can.* be (used|read)") as refusal:
            credentials.ssl_context()
        assert forms_in(str(refusal.value)) == []
        assert refusal.value.__cause__ is None
    for shown in (
        *PROOFS,
        Credentials(certificate=ClientCertificate(pem, pem)),
        GatewayOptions("http://g", token=CANARY),
    ):
        assert forms_in(repr(shown) + str(shown)) == []


def test_logs_hold_what_they_are_given_and_no_objects() -> None:
    """An object in `extra` is left out, whatever it would show of itself."""
    record = logging.makeLogRecord({"msg": "sent", "credentials": Token(CANARY), "headers": {"Authorization": CANARY}})
    assert forms_in(JsonFormatter().format(record)) == []
