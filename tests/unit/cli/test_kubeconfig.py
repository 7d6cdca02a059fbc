"""Kubeconfigs as kubectl reads them: several files, contexts, and programs that give credentials."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from scalable_topics_operator.cli.exec_credential import ExecCredentialError, Issued, issue
from scalable_topics_operator.cli.kubeconfig import choose, log_in
from scalable_topics_operator.cli.kubeconfig_entries import Cluster, Program
from scalable_topics_operator.cli.main import app
from scalable_topics_operator.cluster.kube_login import NoKubernetes

V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cret-t0ken"


def _config(server: str = "http://one:1", **user: Any) -> dict[str, Any]:
    return {
        "current-context": "x",
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
            {"name": "y", "context": {"cluster": "c"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    return file


def _program(folder: Path, code: str) -> dict[str, Any]:
    file = folder / "gives.py"
    file.write_text(code)
    return {"apiVersion": V1, "command": sys.executable, "args": [str(file)]}


def _issue(settings: dict[str, Any]) -> Issued:
    return issue(Program.model_validate(settings), Cluster())


def _printing(status: Any) -> str:
    return f"import json; print(json.dumps({{'status': {status!r}}}))"


def test_the_current_context_says_which_server_and_namespace(kubeconfig: Path) -> None:
    kubeconfig.write_text(yaml.safe_dump(_config(token=SECRET)))
    found = log_in()
    assert (found.server, found.namespace) == ("http://one:1", "shop")
    assert found.headers == {"Authorization": f"Bearer {SECRET}"}


def test_another_context_may_be_chosen_and_one_without_a_user_is_anonymous(kubeconfig: Path) -> None:
    kubeconfig.write_text(yaml.safe_dump(_config(token=SECRET)))
    found = log_in("y")
    assert (found.headers, found.namespace) == ({}, "default")


def test_of_several_files_the_first_with_a_name_wins_and_missing_ones_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(yaml.safe_dump({"clusters": [{"name": "c", "cluster": {"server": "http://first:1"}}]}))
    second.write_text(yaml.safe_dump(_config("http://second:1", token=SECRET)))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (tmp_path / "none", first, second))))
    assert log_in().server == "http://first:1"


def test_paths_are_those_from_the_file_they_stand_in(tmp_path: Path) -> None:
    config = _config(**{"client-key": "keys/me.pem", "tokenFile": "/var/token"})
    chosen = choose([(tmp_path / "config", config)], None)
    assert chosen.user.client_key == str(tmp_path / "keys/me.pem")
    assert chosen.user.token_file == "/var/token"


def test_a_token_may_be_in_a_file(kubeconfig: Path) -> None:
    (kubeconfig.parent / "token").write_text(f"{SECRET}\n")
    kubeconfig.write_text(yaml.safe_dump(_config(tokenFile="token")))
    assert log_in().headers == {"Authorization": f"Bearer {SECRET}"}


def test_a_program_gives_the_token_and_is_told_of_the_cluster(kubeconfig: Path) -> None:
    code = (
        "import json, os; told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert told['kind'] == 'ExecCredential' and told['spec']['cluster']['server'] == 'http://one:1'\n"
        "print(json.dumps({'status': {'token': os.environ['WHO'] + '-t0ken'}}))"
    )
    program = _program(kubeconfig.parent, code)
    extra = {"provideClusterInfo": True, "env": [{"name": "WHO", "value": "clouds"}]}
    kubeconfig.write_text(yaml.safe_dump(_config(exec={**program, **extra})))
    assert log_in().headers == {"Authorization": "Bearer clouds-t0ken"}


def test_a_program_may_give_a_certificate(tmp_path: Path) -> None:
    status = {"clientCertificateData": "certificate", "clientKeyData": "key"}
    assert _issue(_program(tmp_path, _printing(status))) == Issued(None, "certificate", "key")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}, "v1alpha1"),
        (
            {"apiVersion": V1, "command": "/nowhere/gives", "installHint": "install it"},
            "No such file or directory; install it",
        ),
    ],
)
def test_a_program_that_cannot_be_used_is_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ExecCredentialError, match=words):
        _issue(settings)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", "ended with 3"),
        (f"print({SECRET!r})", "printed no ExecCredential"),
        (_printing({"expirationTimestamp": "2026-01-01T00:00:00Z"}), "neither a token nor a certificate"),
        (_printing({"clientCertificateData": SECRET}), "neither a token nor a certificate"),
        (_printing({"token": [SECRET]}), "printed no ExecCredential"),
    ],
)
def test_a_program_that_gives_nothing_is_told_without_what_it_printed(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(ExecCredentialError, match=words) as caught:
        _issue(_program(tmp_path, code))
    assert SECRET not in str(caught.value)


def test_a_program_that_waits_for_somebody_does_not_hold_up_who_presses_the_tab_key(kubeconfig: Path) -> None:
    program = _program(kubeconfig.parent, "import time; time.sleep(60)")
    kubeconfig.write_text(yaml.safe_dump(_config(exec=program)))
    words = "stopics split or"
    asked = {"_STOPICS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    begun = time.monotonic()
    result = CliRunner().invoke(app, prog_name="stopics", env=asked)
    assert (result.output.strip(), result.exit_code) == ("", 0)
    assert time.monotonic() - begun < 30
    with pytest.raises(NoKubernetes, match=r"gave no credentials in 0\.1 s"):
        log_in(timeout_seconds=0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": None}, "no current-context"),
        ({"current-context": "z"}, "no context 'z'"),
        ({"clusters": []}, "no cluster 'c'"),
        ({"users": None}, "no user 'u'"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server"),
        ({"clusters": [{"name": "c", "cluster": {"server": "http://x", "proxy-url": "http://y"}}]}, "proxy-url"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://x", "tls-server-name": "y"}}]}, "tls-server-name"),
    ],
)
def test_what_is_missing_is_told(kubeconfig: Path, change: dict[str, Any], words: str) -> None:
    kubeconfig.write_text(yaml.safe_dump({**_config(token=SECRET), **change}))
    with pytest.raises(NoKubernetes, match=words):
        log_in()


@pytest.mark.parametrize("text", ["a: [", "just words", f"- {SECRET}", json.dumps({"users": SECRET})])
def test_what_cannot_be_read_is_told_without_what_it_holds(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(NoKubernetes) as caught:
        log_in()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 5}, "users of .*config is no list"),
        ({"contexts": {"name": "x"}}, "contexts of .*config is no list"),
        ({"contexts": [{"name": "x", "context": "hello"}]}, "context 'x' of .*config cannot be used: Input should be"),
        ({"clusters": [{"name": "c", "cluster": {"server": 7}}]}, "cluster 'c' .*: server: Input should be a .*string"),
        ({"users": [{"name": "u", "user": SECRET}]}, "user 'u' of .*config cannot be used: Input should be"),
        ({"users": [{"name": "u", "user": {"token": [SECRET]}}]}, "user 'u' .*: token: Input should be a .*string"),
        ({"users": [{"name": "u", "user": {"token": f"{SECRET}\nX: y"}}]}, "token .* no header may have"),
        ({"users": [{"name": "u", "user": {"tokenFile": 7}}]}, "user 'u' .*: tokenFile: Input should be a .*string"),
        ({"users": [{"name": "u", "user": {"exec": SECRET}}]}, "user 'u' .*: exec: Input should be"),
        (
            {"users": [{"name": "u", "user": {"exec": {"apiVersion": V1, "env": [{"name": SECRET}]}}}]},
            "exec.env.0.value: Field required",
        ),
        ({"users": [{"name": "u", "user": {"exec": {"env": 5}}}]}, "user 'u' .*: exec.env: Input should be a .*list"),
        ({"users": [{"name": "u", "user": {"as": "me", "as-groups": SECRET}}]}, "as-groups: Input should be a .*list"),
        ({"users": [{"name": "u", "user": {"token": SECRET, "as-groups": ["dev"]}}]}, "as-groups .* without as"),
        ({"users": [{"name": "u", "user": {"as": "me\nX: y"}}]}, "cannot be written in a header"),
    ],
)
def test_what_is_of_another_kind_is_told_in_one_line_without_what_it_holds(
    kubeconfig: Path, change: dict[str, Any], words: str
) -> None:
    kubeconfig.write_text(yaml.safe_dump({**_config(token=SECRET), **change}))
    result = CliRunner().invoke(app, ["get"], env={"COLUMNS": "1000"})
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert re.search(words, result.stderr)
    assert SECRET not in result.output


def test_entries_show_nothing_of_themselves(tmp_path: Path) -> None:
    chosen = choose([(tmp_path / "config", _config(token=SECRET, password=SECRET))], None)
    assert SECRET not in f"{chosen} {chosen.user}"


def test_keys_that_are_none_are_told_without_what_they_hold(kubeconfig: Path) -> None:
    user = {"client-certificate-data": SECRET, "client-key-data": SECRET}
    kubeconfig.write_text(yaml.safe_dump(_config("https://one:1", **user)))
    with pytest.raises(NoKubernetes, match="credentials cannot be read") as caught:
        log_in()
    assert SECRET not in str(caught.value)


def test_a_kubeconfig_that_is_not_there_is_named(kubeconfig: Path) -> None:
    with pytest.raises(NoKubernetes, match=f"no file {kubeconfig}"):
        log_in()
