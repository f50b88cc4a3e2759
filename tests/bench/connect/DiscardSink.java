import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Takes records and does nothing with them: what is measured then is Kafka Connect itself. */
public class DiscardSink extends SinkConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return DiscardTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < tasks; task++)
            configs.add(settings);
        return configs;
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }

    /** Counts, so that no compiler can leave the records out. */
    public static class DiscardTask extends SinkTask {
        private long taken;

        @Override
        public void start(Map<String, String> settings) {}

        @Override
        public void put(Collection<SinkRecord> records) {
            for (SinkRecord record : records)
                taken += record.value() == null ? 0 : 1;
        }

        @Override
        public void stop() {
            System.out.println("discarded " + taken);
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
