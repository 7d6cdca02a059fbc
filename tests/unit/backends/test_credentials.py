import ssl

import pytest

from scalable_topics_operator.backends.admin.credentials import Basic, ClientCertificate, Credentials, Token

SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(Token(SECRET)),
        Credentials(Basic("user", SECRET)),
        Credentials(certificate=ClientCertificate(SECRET.encode(), SECRET.encode())),
        Credentials(trusted_ca_pem=SECRET.encode()),
    ],
)
def test_secrets_are_not_shown(credentials: Credentials) -> None:
    assert SECRET not in repr(credentials)
    assert SECRET not in f"{credentials} {credentials.authorization} {credentials.certificate}"


def test_headers_carry_the_credentials() -> None:
    assert Credentials().headers() == {}
    assert Credentials(Token("abc")).headers() == {"Authorization": "Bearer abc"}
    assert Credentials(Basic("Aladdin", "open sesame")).headers() == {
        "Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    }


def test_secrets_to_hide_include_their_encoded_form() -> None:
    assert set(Basic("Aladdin", "open sesame").secrets()) == {"open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}


def test_tls_checks_servers_unless_told_otherwise() -> None:
    context = Credentials().ssl_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    relaxed = Credentials(verify_hostname=False).ssl_context()
    assert relaxed.verify_mode is ssl.CERT_REQUIRED
    assert not relaxed.check_hostname


@pytest.mark.parametrize(
    ("credentials", "problem"),
    [
        (Credentials(trusted_ca_pem=b"s3cr3t-value"), "trusted CA bundle"),
        (Credentials(trusted_ca_pem=b"\xff\xfe"), "trusted CA bundle"),
        (Credentials(certificate=ClientCertificate(b"s3cr3t-value", b"s3cr3t-value")), "client certificate"),
    ],
)
def test_c62_unusable_tls_material_is_named_and_not_shown(credentials: Credentials, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        credentials.ssl_context()
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
