"""What the local brokers hold from the start: tenants, namespaces and who may do what in them."""

from dev.broker_settings import CLUSTER
from dev.pulsar_admin import PulsarAdmin

# Tenant -> roles that administer it.
TENANTS = {"team": ["namespace-admin"], "tests": []}
NAMESPACES = ("team/apps", "tests/default")
CLIENT_NAMESPACES = ("public/default", *NAMESPACES)
CLIENT_ACTIONS = ("produce", "consume")


def create_tenancy(admin: PulsarAdmin) -> None:
    """Create tenants and namespaces, and let role `client` produce and consume. Harmless when repeated."""
    for tenant, roles in TENANTS.items():
        admin.create(f"tenants/{tenant}", {"adminRoles": roles, "allowedClusters": [CLUSTER]})
    for namespace in NAMESPACES:
        admin.create(f"namespaces/{namespace}")
    for namespace in CLIENT_NAMESPACES:
        admin.post(f"namespaces/{namespace}/permissions/client", list(CLIENT_ACTIONS))
