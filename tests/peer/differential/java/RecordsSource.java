package wherry.peer;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;

/** Gives the records that a file describes, one in a line, with whatever schemas they have. */
public class RecordsSource extends SourceConnector {
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
        return RecordsSourceTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int max) {
        return List.of(settings);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "File of records.")
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "Topic they go to.");
    }
}
