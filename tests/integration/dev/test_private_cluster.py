"""Instances: side by side, restarted on their data, and gone without a trace when stopped."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pulsar as pulsar_client
import pytest

from dev.access import ADMIN_URL, KUBECONFIG
from dev.broker_settings import Profile
from dev.cache import CACHE_VARIABLE, cache_root
from dev.errors import DevError
from dev.instance import RUN_VARIABLE, LocalCluster, Shape
from dev.ports import LOOPBACK, PortReservations
from dev.pulsar_admin import PulsarAdmin

Factory = Callable[[Shape], LocalCluster]
CONTROL_PLANE = Shape(brokers=0)
STANDALONE = Shape(kubernetes=False)
REPOSITORY = Path(__file__).parents[3]


def superuser(cluster: LocalCluster) -> PulsarAdmin:
    access = cluster.pulsar.access
    return PulsarAdmin(access.admin_url, access.superuser_token)


def kubectl(cluster: LocalCluster, *arguments: str) -> str:
    access = cluster.kubernetes.access
    command = [str(cluster.kubernetes.kubectl), "--kubeconfig", str(access.kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of all processes of the machine that name a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(directory) in command:
            found.append(command)
    return found


def test_two_control_planes_side_by_side_share_nothing(local_cluster: Factory) -> None:
    first, second = local_cluster(CONTROL_PLANE), local_cluster(CONTROL_PLANE)
    kubectl(first, "create", "namespace", "only-here")
    assert "only-here" in kubectl(first, "get", "namespaces")
    assert "only-here" not in kubectl(second, "get", "namespaces")
    first.stop()
    assert processes_of(first.directory) == []
    assert "default" in kubectl(second, "get", "namespaces")


def test_control_plane_keeps_objects_over_a_restart(local_cluster: Factory) -> None:
    cluster = local_cluster(CONTROL_PLANE)
    kubectl(cluster, "create", "configmap", "kept", "--from-literal=k=v")
    before = cluster.running()
    cluster.kubernetes.restart()
    assert kubectl(cluster, "get", "configmap", "kept", "-o", "jsonpath={.data.k}") == "v"
    assert set(before.values()).isdisjoint(cluster.running().values())


def test_namespace_deletion_is_carried_out(local_cluster: Factory) -> None:
    """The controllers run: a deleted namespace takes its objects along and goes."""
    cluster = local_cluster(CONTROL_PLANE)
    kubectl(cluster, "create", "namespace", "short-lived")
    kubectl(cluster, "-n", "short-lived", "create", "configmap", "inside")
    kubectl(cluster, "delete", "namespace", "short-lived", "--wait", "--timeout=50s")
    assert "short-lived" not in kubectl(cluster, "get", "namespaces")


def test_broker_keeps_topics_over_stop_and_crash_and_a_stop_leaves_no_process(local_cluster: Factory) -> None:
    cluster = local_cluster(STANDALONE)
    admin = superuser(cluster)
    topic = "persistent/tests/default/kept"
    admin.create(topic)
    admin.create(f"{topic}/subscription/s")
    cluster.pulsar.stop_broker(0)
    with pytest.raises(DevError, match="got no answer"):
        admin.ask("GET", topic, timeout_seconds=2)
    cluster.pulsar.start_broker(0)
    assert admin.ask("GET", f"{topic}/subscriptions").json() == ["s"]
    cluster.pulsar.kill_broker(0)
    assert cluster.running() == {}
    cluster.pulsar.start_broker(0)
    assert admin.ask("GET", f"{topic}/subscriptions").json() == ["s"]
    pids = cluster.running().values()
    cluster.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert processes_of(cluster.directory) == []
    assert [file.name for file in cluster.directory.iterdir()] == ["logs"]


def test_instance_stopped_with_its_data_comes_back_at_the_same_addresses(local_cluster: Factory) -> None:
    cluster = local_cluster(STANDALONE)
    environment = cluster.environment()
    topic = "persistent/tests/default/kept"
    superuser(cluster).create(topic)
    superuser(cluster).create(f"{topic}/subscription/s")
    cluster.stop(keep_data=True)
    again = LocalCluster(cluster.name, STANDALONE)
    again.start()
    assert again.environment() == environment
    assert superuser(again).ask("GET", f"{topic}/subscriptions").json() == ["s"]
    with pytest.raises(DevError, match=r"exists with .* 1 broker\(s\).* not with .* 2 broker\(s\)"):
        LocalCluster(cluster.name, Shape(kubernetes=False, brokers=2)).start()


def test_rollover_profile_rolls_ledgers_over(local_cluster: Factory) -> None:
    """Hazards A1-26678 and A1-26680 appear only where ledgers roll over all the time."""
    cluster = local_cluster(Shape(kubernetes=False, profile=Profile.ROLLOVER))
    access = cluster.pulsar.access
    authentication = pulsar_client.AuthenticationToken(access.client_token)
    client = pulsar_client.Client(access.service_url, authentication=authentication)
    try:
        client.subscribe("persistent://tests/default/rolling", "s")
        producer = client.create_producer("persistent://tests/default/rolling", batching_enabled=False)
        for number in range(100):
            producer.send(str(number).encode())
    finally:
        client.close()
    stats = superuser(cluster).ask("GET", "persistent/tests/default/rolling/internalStats").json()
    assert len(stats["ledgers"]) >= 4


@pytest.mark.parametrize(("shape", "port_name"), [(CONTROL_PLANE, "kube-apiserver"), (STANDALONE, "broker-0-web")])
def test_port_taken_by_another_program_in_the_last_moment_is_replaced(
    local_cluster: Factory, monkeypatch: pytest.MonkeyPatch, shape: Shape, port_name: str
) -> None:
    squatter = socket.socket()
    hand_over = PortReservations.hand_over
    reserve = PortReservations.reserve
    numbers: list[int] = []

    def remember(reservations: PortReservations, names: list[str]) -> dict[str, int]:
        ports = reserve(reservations, names)
        numbers.append(ports[port_name])
        return ports

    def squat(reservations: PortReservations, *names: str) -> None:
        hand_over(reservations, *names)
        if port_name in names and len(numbers) == 1:
            squatter.bind((LOOPBACK, numbers[0]))
            squatter.listen()

    monkeypatch.setattr(PortReservations, "reserve", remember)
    monkeypatch.setattr(PortReservations, "hand_over", squat)
    with squatter:
        cluster = local_cluster(shape)
        assert len(numbers) == 2
        assert numbers[0] != numbers[1]
        assert cluster.running()


@pytest.fixture
def own_run_directory(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {KUBECONFIG, ADMIN_URL}}
    return kept | {RUN_VARIABLE: str(tmp_path / "run"), CACHE_VARIABLE: str(cache_root())}


def dev_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dev", *arguments]


def test_run_passes_the_environment_and_the_exit_code_and_leaves_nothing(
    own_run_directory: dict[str, str], tmp_path: Path
) -> None:
    script = 'kubectl get namespace default -o name && test -r "$PULSAR_ADMIN_TOKEN_FILE" && exit 7'
    done = subprocess.run(
        dev_command("run", "--", "sh", "-c", script),
        cwd=REPOSITORY,
        env=own_run_directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout == "namespace/default\n"
    assert processes_of(tmp_path / "run") == []


def test_run_that_is_ended_by_a_signal_leaves_nothing(own_run_directory: dict[str, str], tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = dev_command("run", "--", "sh", "-c", f"touch {started}; exec sleep 600")
    runner = subprocess.Popen(command, cwd=REPOSITORY, env=own_run_directory, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not started.exists():
        assert runner.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert processes_of(tmp_path / "run") != []
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 128 + signal.SIGTERM
    assert processes_of(tmp_path / "run") == []


def test_existing_cluster_is_used_and_nothing_is_started(own_run_directory: dict[str, str], tmp_path: Path) -> None:
    named = own_run_directory | {KUBECONFIG: "/somewhere/config", ADMIN_URL: "http://brokers.example:8080"}
    script = f'test "${KUBECONFIG}" = /somewhere/config && exit 3'
    for arguments, code in ((["run", "--", "sh", "-c", script], 3), (["up"], 0)):
        command = dev_command(*arguments)
        done = subprocess.run(command, cwd=REPOSITORY, env=named, capture_output=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
    assert not (tmp_path / "run").exists()
