import java.nio.ByteBuffer;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;

/** Which segment a message is on. The client's interface does not say it outright. */
final class Segments {
    private Segments() {}

    /** By what a producer is answered: the serialised form of an id begins with the segment's, as 8 bytes. */
    static long of(MessageId id) {
        return ByteBuffer.wrap(id.toByteArray()).getLong();
    }

    /** By the topic a message was read from: {@code segment://tenant/namespace/topic/0000-7fff-ID}. */
    static long of(Message<?> message) {
        return Long.parseLong(message.topic().substring(message.topic().lastIndexOf('-') + 1));
    }
}
