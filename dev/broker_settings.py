"""The settings of brokers, bookie and ZooKeeper, as values. They make the brokers as hostile as production.

Hostile means: idle topics are deleted within seconds, unknown topics are created by whoever names them, and
nobody may do anything without a token that says so.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from dev import tokens
from dev.ports import LOOPBACK

CLUSTER = "local"
STANDALONE_BUNDLES = 4
TWO_BROKER_BUNDLES = 8


class Profile(StrEnum):
    """Ordinary brokers; brokers whose ledgers roll over all the time (sealing under load fails there); or brokers with
    room for tens of thousands of topics.
    """

    ORDINARY = "ordinary"
    ROLLOVER = "rollover"
    FLEET = "fleet"


class PulsarLine(StrEnum):
    """Pulsar 4, on which the operator is the controller, or Pulsar 5, whose brokers have scalable topics natively."""

    FOUR = "4"
    FIVE = "5"


ROLLOVER_SETTINGS = {
    "managedLedgerMaxEntriesPerLedger": "20",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "managedLedgerMaxLedgerRolloverTimeMinutes": "1",
}

# As often as brokers do by default: each looks through all topics.
FLEET_SETTINGS = {
    "statsUpdateFrequencyInSecs": "60",
    "statsUpdateInitialDelayInSecs": "60",
    "brokerDeleteInactiveTopicsFrequencySeconds": "60",
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "60",
}

HOSTILE_SETTINGS = {
    "brokerDeleteInactiveTopicsEnabled": "true",
    "brokerDeleteInactiveTopicsMode": "delete_when_no_subscriptions",
    "brokerDeleteInactiveTopicsFrequencySeconds": "5",
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "10",
    "allowAutoTopicCreation": "true",
    "allowAutoTopicCreationType": "non-partitioned",
    "topicLevelPoliciesEnabled": "true",
    "systemTopicEnabled": "true",
}

# Loads are told and looked at within seconds. Auto scale is on, as by default: a layout changes by itself.
NATIVE_SETTINGS = {
    "scalableTopicLoadReportIntervalSeconds": "2",
    "scalableTopicAutoScaleIntervalSeconds": "5",
}

# Threads and caches for a small machine; one copy of each entry, as there is one bookie.
SMALL_BROKER_SETTINGS = {
    "numIOThreads": "2",
    "numHttpServerThreads": "8",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerCacheSizeMB": "64",
    "statsUpdateFrequencyInSecs": "5",
    "statsUpdateInitialDelayInSecs": "5",
}

SMALL_BOOKIE_SETTINGS = {
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "dbStorage_writeCacheMaxSizeMb": "32",
    "dbStorage_readAheadCacheMaxSizeMb": "16",
    "dbStorage_rocksDB_blockCacheSize": "16777216",
    "journalSyncData": "false",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "diskUsageLwmThreshold": "0.98",
    "allowLoopback": "true",
    "listeningInterface": "lo",
    "httpServerEnabled": "false",
}


def standalone(
    address: str,
    service_port: int,
    web_port: int,
    token_directory: Path,
    profile: Profile,
    line: PulsarLine = PulsarLine.FOUR,
) -> dict[str, str]:
    """Return the settings of a broker, its bookie and its metadata store in one process."""
    return {
        **_broker(address, service_port, web_port, token_directory, profile, line, STANDALONE_BUNDLES),
        **SMALL_BOOKIE_SETTINGS,
    }


def broker(
    address: str,
    service_port: int,
    web_port: int,
    zookeeper_port: int,
    token_directory: Path,
    profile: Profile,
    line: PulsarLine = PulsarLine.FOUR,
) -> dict[str, str]:
    """Return the settings of one of several brokers over a ZooKeeper and a bookie."""
    store = f"zk:{LOOPBACK}:{zookeeper_port}"
    return {
        **_broker(address, service_port, web_port, token_directory, profile, line, TWO_BROKER_BUNDLES),
        "metadataStoreUrl": store,
        "configurationMetadataStoreUrl": store,
    }


def bookie(port: int, zookeeper_port: int, directory: Path) -> dict[str, str]:
    """Return the settings of the one bookie, which keeps its data in `directory`."""
    return {
        "bookiePort": str(port),
        "advertisedAddress": LOOPBACK,
        "metadataServiceUri": f"zk+null://{LOOPBACK}:{zookeeper_port}/ledgers",
        "zkServers": f"{LOOPBACK}:{zookeeper_port}",
        "journalDirectory": str(directory / "journal"),
        "ledgerDirectories": str(directory / "ledgers"),
        **SMALL_BOOKIE_SETTINGS,
    }


def zookeeper(port: int, directory: Path) -> dict[str, str]:
    """Return the settings of the one ZooKeeper, which keeps its data in `directory`."""
    return {
        "tickTime": "2000",
        "dataDir": str(directory),
        "clientPort": str(port),
        "clientPortAddress": LOOPBACK,
        "admin.enableServer": "false",
    }


def render(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a configuration file."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _broker(
    address: str,
    service_port: int,
    web_port: int,
    token_directory: Path,
    profile: Profile,
    line: PulsarLine,
    bundles: int,
) -> dict[str, str]:
    return {
        "clusterName": CLUSTER,
        "brokerServicePort": str(service_port),
        "webServicePort": str(web_port),
        "bindAddress": address,
        "advertisedAddress": address,
        "defaultNumberOfNamespaceBundles": str(bundles),
        **SMALL_BROKER_SETTINGS,
        **HOSTILE_SETTINGS,
        **_authentication(token_directory),
        **(ROLLOVER_SETTINGS if profile is Profile.ROLLOVER else {}),
        **(FLEET_SETTINGS if profile is Profile.FLEET else {}),
        **(NATIVE_SETTINGS if line is PulsarLine.FIVE else {}),
    }


def _authentication(token_directory: Path) -> dict[str, str]:
    superuser = tokens.token_file(token_directory, "superuser")
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": tokens.secret_key_file(token_directory).as_uri(),
        "superUserRoles": "superuser",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": superuser.as_uri(),
    }
