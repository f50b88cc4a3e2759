import java.util.Map;
import java.util.TreeMap;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Prints the figures of a group of Kafka Connect's metrics: a line of connector, attribute and value for each. */
public final class Counts {
    private Counts() {
    }

    public static void main(String[] arguments) throws Exception {
        String port = arguments[0];
        String group = arguments[1];
        JMXServiceURL url = new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi");
        try (JMXConnector connector = JMXConnectorFactory.connect(url, Map.of())) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            TreeMap<String, Object> found = new TreeMap<>();
            for (ObjectName name : server.queryNames(new ObjectName("kafka.connect:type=" + group + ",*"), null)) {
                for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                    String key = name.getKeyProperty("connector") + "\t" + attribute.getName();
                    found.put(key, server.getAttribute(name, attribute.getName()));
                }
            }
            found.forEach((key, value) -> System.out.println(key + "\t" + value));
        }
    }
}
