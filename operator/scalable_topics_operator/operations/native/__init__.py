"""Operations on topics whose layout the brokers own (Pulsar 5): asked for by one call each, told by their layout."""
