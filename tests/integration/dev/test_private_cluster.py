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


def test_control_planes_side_by_side_share_nothing_and_keep_objects_over_a_restart(
    local_cluster: Factory,
) -> None:
    first, second = local_cluster(CONTROL_PLANE), local_cluster(CONTROL_PLANE)
    kubectl(first, "create", "namespace", "only-here")
    assert "only-here" not in kubectl(second, "get", "namespaces")
    before = first.running()
    first.kubernetes.restart()
    assert set(before.values()).isdisjoint(first.running().values())
    assert "only-here" in kubectl(first, "get", "namespaces")
    first.stop()
    assert processes_of(first.directory) == []
    assert "default" in kubectl(second, "get", "namespaces")


def test_broker_keeps_topics_over_crash_and_stop_and_a_stop_leaves_no_process(local_cluster: Factory) -> None:
    cluster = local_cluster(STANDALONE)
    environment = cluster.environment()
    topic = "persistent/tests/default/kept"
    superuser(cluster).create(topic)
    superuser(cluster).create(f"{topic}/subscription/s")

    cluster.pulsar.kill_broker(0)
    assert cluster.running() == {}
    with pytest.raises(DevError, match="got no answer"):
        superuser(cluster).ask("GET", topic, timeout_seconds=2)
    cluster.pulsar.start_broker(0)
    assert superuser(cluster).ask("GET", f"{topic}/subscriptions").json() == ["s"]

    cluster.stop(keep_data=True)
    again = LocalCluster(cluster.name, cluster.shape)
    again.start()
    assert again.environment() == environment
    assert superuser(again).ask("GET", f"{topic}/subscriptions").json() == ["s"]
    with pytest.raises(DevError, match=r"exists with .* 1 broker\(s\).* not with .* 2 broker\(s\)"):
        LocalCluster(cluster.name, Shape(kubernetes=False, brokers=2)).start()

    pids = again.running().values()
    again.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert processes_of(cluster.directory) == []
    assert [file.name for file in cluster.directory.iterdir()] == ["logs"]


def test_rollover_profile_rolls_ledgers_over(local_cluster: Factory) -> None:
    """Seals that come undone and writes that hang at a seal appear only where ledgers roll over all the time."""
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


def test_run_gives_the_command_a_cluster_and_leaves_nothing_when_it_is_ended_by_a_signal(
    own_run_directory: dict[str, str], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    script = f'kubectl get namespace default -o name > {seen}.new; head -c 2 "$PULSAR_ADMIN_TOKEN_FILE" >> {seen}.new'
    script += f"; sh -c 'sleep 600; true' {tmp_path}/beside & mv {seen}.new {seen}; exec sleep 600"
    command = dev_command("run", "--", "sh", "-c", script)
    runner = subprocess.Popen(command, cwd=REPOSITORY, env=own_run_directory, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not seen.exists():
        assert runner.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert seen.read_text() == "namespace/default\ney"
    assert processes_of(tmp_path / "run") != []
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 128 + signal.SIGTERM
    assert processes_of(tmp_path) == []


def test_private_cluster_whose_process_was_killed_is_stopped_as_an_orphan(
    own_run_directory: dict[str, str], tmp_path: Path
) -> None:
    """Test workers may be killed in the middle of a test."""
    script = "import os, signal; from dev.instance import LocalCluster, Shape;"
    script += "LocalCluster.private(Shape(brokers=0)).start(); os.kill(os.getpid(), signal.SIGKILL)"
    command = [sys.executable, "-c", script]
    killed = subprocess.run(command, cwd=REPOSITORY, env=own_run_directory, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert processes_of(tmp_path / "run") != []
    stop = [sys.executable, "-c", "from dev.instance import LocalCluster; LocalCluster.stop_orphans()"]
    subprocess.run(stop, cwd=REPOSITORY, env=own_run_directory, timeout=120, check=True)
    assert processes_of(tmp_path / "run") == []


def test_existing_cluster_is_used_and_nothing_is_started(own_run_directory: dict[str, str], tmp_path: Path) -> None:
    named = own_run_directory | {KUBECONFIG: "/somewhere/config", ADMIN_URL: "http://brokers.example:8080"}
    script = f'test "${KUBECONFIG}" = /somewhere/config && exit 3'
    for arguments, code in ((["run", "--", "sh", "-c", script], 3), (["up"], 0)):
        command = dev_command(*arguments)
        done = subprocess.run(command, cwd=REPOSITORY, env=named, capture_output=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
    assert not (tmp_path / "run").exists()
