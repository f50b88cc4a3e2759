package wherry.peer;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Gives records another partition. */
public class Repartition<R extends ConnectRecord<R>> implements Transformation<R> {
    private int partition;

    @Override
    public void configure(Map<String, ?> settings) {
        partition = Integer.parseInt((String) settings.get("partition"));
    }

    @Override
    public R apply(R record) {
        return record.newRecord(
            record.topic(), partition, record.keySchema(), record.key(), record.valueSchema(), record.value(),
            record.timestamp(), record.headers());
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("partition", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The partition to give.");
    }

    @Override
    public void close() {
    }
}
