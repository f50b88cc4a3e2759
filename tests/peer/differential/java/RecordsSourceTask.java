package wherry.peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Reads the file once, and then gives nothing more. */
public class RecordsSourceTask extends SourceTask {
    private static final int POLL_MAX = 7;
    private final ObjectMapper mapper =
        new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
    private final JsonConverter reader = new JsonConverter();
    private Map<String, String> settings;
    private List<String> lines;
    private int next;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> given) {
        settings = given;
        reader.configure(Map.of("schemas.enable", "true"), false);
        try {
            lines = Files.readAllLines(Path.of(settings.get("file")), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new ConnectException(error);
        }
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
        if (next >= lines.size()) {
            Thread.sleep(100);
            return null;
        }
        List<SourceRecord> records = new ArrayList<>();
        while (next < lines.size() && records.size() < POLL_MAX) {
            records.add(record(lines.get(next)));
            next++;
        }
        return records;
    }

    private SourceRecord record(String line) {
        JsonNode described;
        try {
            described = mapper.readTree(line);
        } catch (IOException error) {
            throw new ConnectException(error);
        }
        SchemaAndValue key = typed(described.get("key"));
        SchemaAndValue value = typed(described.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : described.get("headers")) {
            headers.add(header.get(0).asText(), typed(header.get(1)));
        }
        JsonNode partition = described.get("partition");
        JsonNode timestamp = described.get("timestamp");
        return new SourceRecord(
            Map.of("file", settings.get("file")), Map.of("line", next + 1),
            settings.get("topic"), partition.isNull() ? null : partition.asInt(),
            key.schema(), key.value(), value.schema(), value.value(),
            timestamp.isNull() ? null : timestamp.asLong(), headers);
    }

    private SchemaAndValue typed(JsonNode node) {
        if (node.isNull()) {
            return SchemaAndValue.NULL;
        }
        return reader.toConnectData("", node.toString().getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void stop() {
    }
}
