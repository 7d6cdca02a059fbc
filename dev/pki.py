"""Certificates of one control plane: a certificate authority, and what it signs. Made by openssl."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev import prerequisites
from dev.errors import DevError

VALID_DAYS = 3650
COMMAND_TIMEOUT_SECONDS = 30
EC_KEY = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
# For clients that read no other: Java without further libraries.
RSA_KEY = ("rsa:2048",)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a directory, made when it is first asked for.

    Args:
        directory: holds `ca.crt`, `ca.key` and a `.crt` and `.key` for each name signed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.pair = self._files("ca")

    def create(self) -> None:
        """Make the authority's own key and certificate unless they exist."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        usage = ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"]
        self._certificate(self.pair, "/CN=local-cluster-ca", usage)

    def server(self, name: str, alternative_names: str) -> KeyPair:
        """Return a server certificate for these alternative names, in openssl's notation."""
        return self._signed(name, f"/CN={name}", "serverAuth", [f"subjectAltName={alternative_names}"])

    def client(self, name: str, subject: str, key: Sequence[str] = EC_KEY) -> KeyPair:
        """Return a client certificate for a subject such as `/O=system:masters/CN=admin`."""
        return self._signed(name, subject, "clientAuth", [], key)

    def signing_key(self, name: str) -> KeyPair:
        """Return a key pair for signing tokens; its `certificate` is the bare public key."""
        pair = self._files(name)
        if not pair.certificate.exists():
            parameters = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
            _openssl("genpkey", *parameters, "-out", str(pair.key))
            pair.key.chmod(0o600)
            _openssl("pkey", "-in", str(pair.key), "-pubout", "-out", str(pair.certificate))
        return pair

    def _signed(
        self, name: str, subject: str, usage: str, extensions: list[str], key: Sequence[str] = EC_KEY
    ) -> KeyPair:
        pair = self._files(name)
        authority = ["-CA", str(self.pair.certificate), "-CAkey", str(self.pair.key)]
        constraints = [
            "basicConstraints=critical,CA:FALSE",
            "keyUsage=critical,digitalSignature",
            f"extendedKeyUsage={usage}",
        ]
        added = [part for extension in constraints + extensions for part in ("-addext", extension)]
        self._certificate(pair, subject, [*authority, *added], key)
        return pair

    def _certificate(self, pair: KeyPair, subject: str, options: list[str], key: Sequence[str] = EC_KEY) -> None:
        if pair.certificate.exists():
            return
        new_key = ["-newkey", *key, "-noenc", "-keyout", str(pair.key)]
        common = ["-x509", "-days", str(VALID_DAYS), "-subj", subject]
        _openssl("req", *common, *new_key, *options, "-out", str(pair.certificate))
        pair.key.chmod(0o600)

    def _files(self, name: str) -> KeyPair:
        return KeyPair(self._directory / f"{name}.crt", self._directory / f"{name}.key")


def _openssl(*arguments: str) -> None:
    command = [str(prerequisites.openssl()), *arguments]
    timeout = COMMAND_TIMEOUT_SECONDS
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise DevError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
