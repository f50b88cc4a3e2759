package wherry.peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

/** Appends the records of a call at once. */
public class RecordsSinkTask extends SinkTask {
    private static final String HEADERS = "header.converter";
    private final ObjectMapper mapper = new ObjectMapper();
    private final JsonConverter writer = new JsonConverter();
    private final HeaderConverter simple = new SimpleHeaderConverter();
    private HeaderConverter headerWriter;
    private Path file;
    private String refuse;
    private ErrantRecordReporter reporter;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> settings) {
        file = Path.of(settings.get("file"));
        refuse = settings.getOrDefault("refuse", "");
        reporter = context.errantRecordReporter();
        writer.configure(Map.of("schemas.enable", "true"), false);
        headerWriter = headerWriter(settings);
    }

    /** The connector's own header converter: headers are shown as it writes what it has read. */
    private static HeaderConverter headerWriter(Map<String, String> settings) {
        Map<String, String> own = new HashMap<>(Map.of("converter.type", "header"));
        settings.forEach((key, value) -> {
            if (key.startsWith(HEADERS + ".")) {
                own.put(key.substring(HEADERS.length() + 1), value);
            }
        });
        try {
            Class<?> kind = Class.forName(settings.getOrDefault(HEADERS, SimpleHeaderConverter.class.getName()));
            HeaderConverter made = (HeaderConverter) kind.getDeclaredConstructor().newInstance();
            made.configure(own);
            return made;
        } catch (ReflectiveOperationException error) {
            throw new ConnectException(error);
        }
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        StringBuilder text = new StringBuilder();
        try {
            for (SinkRecord record : records) {
                if (!refuse.isEmpty() && refuse.equals(String.valueOf(record.value()))) {
                    reporter.report(record, new ConnectException("It is refused by name."));
                    continue;
                }
                text.append(mapper.writeValueAsString(shown(record))).append('\n');
            }
            byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
            Files.write(file, bytes, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new ConnectException(error);
        }
    }

    private ObjectNode shown(SinkRecord record) throws IOException {
        ObjectNode node = mapper.createObjectNode();
        node.put("topic", record.topic());
        node.put("partition", record.kafkaPartition());
        node.put("offset", record.kafkaOffset());
        node.put("original_topic", record.originalTopic());
        node.put("original_partition", record.originalKafkaPartition());
        node.put("original_offset", record.originalKafkaOffset());
        node.put("timestamp", record.timestamp());
        node.set("key", typed(record.keySchema(), record.key()));
        node.set("value", typed(record.valueSchema(), record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.add(mapper.createArrayNode().add(header.key()).add(written(record.topic(), header)));
        }
        return node;
    }

    private JsonNode written(String topic, Header header) {
        try {
            return shown(headerWriter.fromConnectHeader(topic, header.key(), header.schema(), header.value()));
        } catch (RuntimeException error) {
            return shown(text(topic, header));
        }
    }

    /** What its own converter can't write is text. */
    private byte[] text(String topic, Header header) {
        try {
            return simple.fromConnectHeader(topic, header.key(), header.schema(), header.value());
        } catch (RuntimeException error) {
            return header.value().toString().getBytes(StandardCharsets.UTF_8);
        }
    }

    private JsonNode shown(byte[] bytes) {
        return bytes == null ? mapper.nullNode() : mapper.getNodeFactory().textNode(Base64.getEncoder().encodeToString(bytes));
    }

    private JsonNode typed(Schema schema, Object value) throws IOException {
        if (value == null) {
            return mapper.nullNode(); // Wherry has its nulls in columns, which have a schema in any case
        }
        try {
            byte[] bytes = writer.fromConnectData("", schema, value);
            return bytes == null ? mapper.nullNode() : mapper.readTree(bytes);
        } catch (RuntimeException error) {
            return mapper.createObjectNode().put("unwritable", true);
        }
    }

    @Override
    public void stop() {
    }
}
