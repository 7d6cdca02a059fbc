import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.async.AsyncMessageBuilder;
import org.apache.pulsar.client.api.v5.auth.AuthenticationFactory;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * Traffic by Pulsar's own V5 client on native scalable topics, steered by JSON lines.
 *
 * <p>Each line of standard input is a command {@code {"id": …, "do": …}}; it is answered by a line with {@code "of": id}
 * that is {@code done} or {@code failed}. What goes on meanwhile is told under the name it was started with. The
 * process ends with its input.
 */
public final class Traffic {
    /** Sends of one list under way at a time: fewer than the client itself holds back. */
    private static final int UNDER_WAY = 200;

    private final Reports reports = new Reports();
    private final Map<String, Activity> activities = new ConcurrentHashMap<>();
    private PulsarClient client;

    public static void main(String[] arguments) throws Exception {
        new Traffic().follow(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    }

    private void follow(BufferedReader commands) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = json.readTree(line);
            String id = command.get("id").asText();
            // Some take long, and none may hold up the one that stops it.
            Thread.ofVirtual().start(() -> obey(id, command));
        }
        for (Activity activity : activities.values()) {
            activity.stop();
        }
        if (client != null) {
            client.close();
        }
        System.exit(0);
    }

    private void obey(String id, JsonNode command) {
        try {
            switch (command.get("do").asText()) {
                case "connect" -> connect(command);
                case "send" -> send(command);
                case "stream" -> stream(command);
                case "queue" -> queue(command);
                case "stop" -> Objects.requireNonNull(activities.remove(text(command, "name")), "no such name").stop();
                case "produce" -> {
                    reports.tell(id, "done", "segments", produce(command));
                    return;
                }
                default -> throw new IllegalArgumentException("unknown command");
            }
            reports.tell(id, "done");
        } catch (Exception error) {
            reports.failed(id, error);
        }
    }

    private void connect(JsonNode command) throws Exception {
        var builder = PulsarClient.builder().serviceUrl(text(command, "serviceUrl"));
        String token = Files.readString(Path.of(text(command, "tokenFile"))).strip();
        client = builder.authentication(AuthenticationFactory.token(token)).build();
    }

    private void send(JsonNode command) throws Exception {
        String name = text(command, "name");
        Producer<String> producer = producer(text(command, "topic"), command.path("producerName").asText());
        activities.put(name, new KeyedSender(name, producer, keys(command),
                command.get("perSecond").asDouble(), command.get("total").asInt(), command.get("sizeBytes").asInt(), reports));
    }

    /** Sends a message to each key of a list, null being no key, many at a time; answers the segment of each. */
    private List<Long> produce(JsonNode command) throws Exception {
        List<CompletableFuture<MessageId>> sends = new ArrayList<>();
        Map<String, Integer> numbers = new HashMap<>();
        Semaphore room = new Semaphore(UNDER_WAY);
        try (Producer<String> producer = producer(text(command, "topic"), "")) {
            for (String key : keys(command)) {
                room.acquire();
                AsyncMessageBuilder<String> message = producer.async().newMessage();
                if (key != null) {
                    message.key(key);
                }
                int number = numbers.merge(key, 1, Integer::sum) - 1;
                sends.add(message.value(text(command, "name") + "|" + number).send().whenComplete((id, error) -> room.release()));
            }
            List<Long> segments = new ArrayList<>();
            for (CompletableFuture<MessageId> send : sends) {
                segments.add(Segments.of(send.get()));
            }
            return segments;
        }
    }

    private void stream(JsonNode command) throws Exception {
        String name = text(command, "name");
        activities.put(name, Receiver.of(name, client.newStreamConsumer(Schema.string())
                .topic(text(command, "topic"))
                .subscriptionName(text(command, "subscription"))
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                .consumerName(name)
                .subscribe(), reports));
    }

    private void queue(JsonNode command) throws Exception {
        String name = text(command, "name");
        activities.put(name, Receiver.of(name, client.newQueueConsumer(Schema.string())
                .topic(text(command, "topic"))
                .subscriptionName(text(command, "subscription"))
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                .consumerName(name)
                .subscribe(), reports));
    }

    /** A producer; brokers name it where {@code name} is empty. */
    private Producer<String> producer(String topic, String name) throws Exception {
        // One message an entry: what is measured is a message's way, and not how long a batch waits for others.
        var builder = client.newProducer(Schema.string()).topic(topic).batchingPolicy(BatchingPolicy.ofDisabled());
        return (name.isEmpty() ? builder : builder.producerName(name)).create();
    }

    private static List<String> keys(JsonNode command) {
        List<String> keys = new ArrayList<>();
        command.get("keys").forEach(key -> keys.add(key.isNull() ? null : key.asText()));
        return keys;
    }

    private static String text(JsonNode command, String field) {
        return command.get(field).asText();
    }
}
