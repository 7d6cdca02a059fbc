import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumer;

/**
 * Receives and acknowledges until it is stopped, and tells of both in their order. An error ends it.
 *
 * <p>A message is told as {@code [key or null, value, segment, time in ns]} before it is acknowledged.
 */
final class Receiver implements Activity {
    private static final Duration WAIT = Duration.ofMillis(200);
    private static final int AT_ONCE = 50;

    private final String name;
    private final Source source;
    private final Reports reports;
    private final Thread thread;
    private volatile boolean stopping;

    private Receiver(String name, Source source, Reports reports) {
        this.name = name;
        this.source = source;
        this.reports = reports;
        this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
    }

    /** A stream consumer's: what has come together is acknowledged up to its last, which is cumulative over segments. */
    static Receiver of(String name, StreamConsumer<String> consumer, Reports reports) {
        return new Receiver(name, new Source() {
            @Override
            public List<Message<String>> receive() throws Exception {
                List<Message<String>> found = new ArrayList<>();
                consumer.receiveMulti(AT_ONCE, WAIT).forEach(found::add);
                return found;
            }

            @Override
            public void acknowledge(List<Message<String>> messages) {
                consumer.acknowledgeCumulative(messages.getLast().id());
            }

            @Override
            public void close() throws Exception {
                consumer.close();
            }
        }, reports);
    }

    /** A queue consumer's: each message is acknowledged by itself. */
    static Receiver of(String name, QueueConsumer<String> consumer, Reports reports) {
        return new Receiver(name, new Source() {
            @Override
            public List<Message<String>> receive() throws Exception {
                Message<String> found = consumer.receive(WAIT);
                return found == null ? List.of() : List.of(found);
            }

            @Override
            public void acknowledge(List<Message<String>> messages) {
                messages.forEach(message -> consumer.acknowledge(message.id()));
            }

            @Override
            public void close() throws Exception {
                consumer.close();
            }
        }, reports);
    }

    @Override
    public void stop() throws Exception {
        stopping = true;
        thread.join();
    }

    private void run() {
        try (source) {
            while (!stopping) {
                List<Message<String>> messages = source.receive();
                if (!messages.isEmpty()) {
                    long now = System.nanoTime();
                    reports.tell(name, "received", "messages", messages.stream().map(one -> told(one, now)).toList());
                    long acknowledged = System.nanoTime();
                    source.acknowledge(messages);
                    reports.tell(name, "acknowledged", "count", messages.size(), "atNs", acknowledged);
                }
            }
        } catch (Exception error) {
            reports.failed(name, error);
        }
        reports.tell(name, "ended");
    }

    private static Object[] told(Message<String> message, long now) {
        return new Object[] {message.key().orElse(null), message.value(), Segments.of(message), now};
    }

    /** What the two kinds of consumers have in common here. */
    private interface Source extends AutoCloseable {
        /** Waits a moment; empty if nothing has come. */
        List<Message<String>> receive() throws Exception;

        void acknowledge(List<Message<String>> messages);
    }
}
