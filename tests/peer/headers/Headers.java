import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.HeaderConverter;

/** What Kafka Connect's header converters make of headers: one question a line, one answer a line. */
public final class Headers {
    private static final ObjectMapper MAPPER = new ObjectMapper()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
    private static final JsonConverter READER = new JsonConverter();
    private static final Map<String, HeaderConverter> MADE = new HashMap<>();

    private Headers() {
    }

    public static void main(String[] arguments) throws Exception {
        READER.configure(Map.of("schemas.enable", "true"), false);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
        }
        out.flush();
    }

    /** `data` is read and written again; anything else is a value that is written. */
    private static ObjectNode answer(JsonNode question) throws Exception {
        HeaderConverter converter = converter(question.get("config"));
        ObjectNode told = MAPPER.createObjectNode();
        SchemaAndValue value;
        try {
            value = question.has("data")
                ? converter.toConnectHeader("t", "h", bytes(question.get("data")))
                : described(question);
            value = value == null ? SchemaAndValue.NULL : value;
            new ConnectHeaders().add("h", value);
        } catch (RuntimeException | StackOverflowError error) {
            return told.put("unread", error.getMessage());
        }
        try {
            byte[] written = converter.fromConnectHeader("t", "h", value.schema(), value.value());
            told.put("written", written == null ? null : Base64.getEncoder().encodeToString(written));
        } catch (RuntimeException | StackOverflowError error) {
            told.put("unwritten", error.getMessage());
        }
        return told;
    }

    private static byte[] bytes(JsonNode data) {
        return data.isNull() ? null : Base64.getDecoder().decode(data.asText());
    }

    private static HeaderConverter converter(JsonNode config) throws ReflectiveOperationException {
        String known = config.toString();
        HeaderConverter made = MADE.get(known);
        if (made == null) {
            Map<String, String> settings = new HashMap<>(Map.of("converter.type", "header"));
            config.fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
            made = (HeaderConverter) Class.forName(settings.remove("")).getDeclaredConstructor().newInstance();
            made.configure(settings);
            MADE.put(known, made);
        }
        return made;
    }

    private static SchemaAndValue described(JsonNode question) throws Exception {
        if (question.has("literal")) {
            return Values.parseString(question.get("literal").asText());
        }
        if (question.has("java")) {
            return new SchemaAndValue(null, single(question.get("java").asText(), question.get("text").asText()));
        }
        return READER.toConnectData("t", MAPPER.writeValueAsBytes(question.get("value")));
    }

    /** A value without a schema, of a class that JSON without a schema does not give. */
    private static Object single(String kind, String text) {
        switch (kind) {
            case "Byte": return Byte.valueOf(text);
            case "Short": return Short.valueOf(text);
            case "Integer": return Integer.valueOf(text);
            case "Float": return Float.valueOf(text);
            case "Date": return new Date(Long.parseLong(text));
            default: return new BigDecimal(text);
        }
    }
}
