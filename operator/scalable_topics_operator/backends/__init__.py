"""The messaging systems behind `operations.protocols.TopicBackend`, and the Pulsar admin client they use."""
