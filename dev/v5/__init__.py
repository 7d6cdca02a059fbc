"""Traffic by Pulsar's V5 client, for the demonstration and for tests."""
