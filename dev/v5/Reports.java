import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** What this process tells: one JSON object a line on its standard output, and nothing else there. */
final class Reports {
    private final ObjectMapper json = new ObjectMapper();
    private final PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    /** Takes standard output for itself: what libraries print goes to standard error from here on. */
    Reports() {
        System.setOut(System.err);
    }

    /**
     * Writes a line.
     *
     * @param of the command, producer or consumer it is about
     * @param is what has happened
     * @param fields names and values in turn
     */
    void tell(String of, String is, Object... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("of", of);
        line.put("is", is);
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        try {
            write(json.writeValueAsString(line));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Writes a line about an error: its class, and what it says. */
    void failed(String of, Throwable error) {
        error.printStackTrace();
        tell(of, "failed", "error", error.getClass().getName(), "message", String.valueOf(error.getMessage()));
    }

    private synchronized void write(String line) {
        out.print(line + "\n");
        out.flush();
    }
}
