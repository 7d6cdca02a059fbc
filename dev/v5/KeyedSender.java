import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.v5.Producer;

/**
 * Sends numbered messages of several keys in turn, one after the other: the next when the one before is stored.
 *
 * <p>The value of a message is {@code name|n|}, with n counted from 0 for each key, and dots up to a size. An error
 * ends it.
 */
final class KeyedSender implements Activity {
    private static final long NS = 1_000_000_000L;

    private final String name;
    private final Producer<String> producer;
    private final List<String> keys;
    private final double perSecond;
    private final int total;
    private final int sizeBytes;
    private final Reports reports;
    private final Thread thread;
    private volatile boolean stopping;

    /** Begins at once. {@code perSecond} 0 is as fast as it goes. */
    KeyedSender(String name, Producer<String> producer, List<String> keys, double perSecond, int total, int sizeBytes,
            Reports reports) {
        this.name = name;
        this.producer = producer;
        this.keys = keys;
        this.perSecond = perSecond;
        this.total = total;
        this.sizeBytes = sizeBytes;
        this.reports = reports;
        this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
    }

    @Override
    public void stop() throws Exception {
        stopping = true;
        thread.join();
    }

    private void run() {
        long[] tookNs = new long[total];
        int stored = 0;
        try (producer) {
            long begin = System.nanoTime();
            for (; stored < total && !stopping; stored++) {
                if (perSecond > 0) {
                    waitUntil(begin + (long) (stored * NS / perSecond));
                }
                String key = keys.get(stored % keys.size());
                int number = stored / keys.size();
                String value = name + "|" + number + "|";
                value += ".".repeat(Math.max(0, sizeBytes - value.length()));
                long called = System.nanoTime();
                long segment = Segments.of(producer.newMessage().key(key).value(value).send());
                tookNs[stored] = System.nanoTime() - called;
                reports.tell(name, "sent", "message", new Object[] {key, number, segment, called, tookNs[stored]});
            }
        } catch (Exception error) {
            reports.failed(name, error);
        }
        long[] sorted = Arrays.copyOf(tookNs, stored);
        Arrays.sort(sorted);
        reports.tell(name, "ended", "count", stored,
                "p50Ns", at(sorted, 0.5), "p99Ns", at(sorted, 0.99), "longestNs", at(sorted, 1.0));
    }

    private void waitUntil(long due) {
        for (long left = due - System.nanoTime(); left > 0 && !stopping; left = due - System.nanoTime()) {
            LockSupport.parkNanos(Math.min(left, NS / 10));
        }
    }

    private static long at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.round((sorted.length - 1) * share)];
    }
}
