package wherry.peer;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** Writes all that a sink gets to see of each record into a file, one in a line. */
public class RecordsSink extends SinkConnector {
    private Map<String, String> settings;

    @Override
    public String version() {
        return "1";
    }

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return RecordsSinkTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int max) {
        return IntStream.range(0, max).mapToObj(each -> settings).collect(Collectors.toList());
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "File to append to.")
            .define("refuse", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "Text of a value to refuse.");
    }
}
