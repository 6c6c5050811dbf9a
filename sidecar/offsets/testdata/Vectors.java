import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.OffsetSync;

/**
 * Writes vectors.jsonl: what MirrorMaker's own classes make of offset syncs, and
 * how they name the topic. In this folder, with the image of
 * ../../../integration/image:
 *
 *   docker run --rm -v "$PWD:/v:ro" --entrypoint java mirror-test/kafka:4.3.1 \
 *     -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp '/opt/kafka/libs/*' /v/Vectors.java > vectors.jsonl
 */
public class Vectors {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        write("t", 0, 10, 7);
        write("", 0, 0, 0);
        write("orders", 11, 1L << 40, (1L << 40) - 3);
        write("A.t", Integer.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE);
        write("x".repeat(249), 255, 256, 65536);
        write("only.ASCII in Kafka, not here: \u00fc\u6f22\ud83d\ude00", 1, 2, 3);

        String key = "00017400000000";
        String value = "000000000000000a0000000000000007";
        read(key, value);
        read(key + "ff", value);
        read(key, value + "00");
        for (int n = 0; n < key.length(); n += 2) {
            read(key.substring(0, n), value);
        }
        for (int n = 0; n < value.length(); n += 2) {
            read(key, value.substring(0, n));
        }
        read("ffff00000000", value);
        read("8000" + "00000000", value);
        read("7fff7400000000", value);
        read("000000000000", value);
        read("000174ffffffff", value);
        read(key, "ffffffffffffffff0000000000000007");
        read(key, "000000000000000affffffffffffffff");
        read("0001ff00000000", value);
        read(null, value);
        read(key, null);

        for (String policy : new String[] {"Default", "Identity"}) {
            for (String separator : new String[] {".", "_", "--"}) {
                for (String location : new String[] {"source", "target"}) {
                    name(policy, separator, location, "A", "B");
                    name(policy, separator, location, "us.east", "eu_west");
                }
            }
        }
    }

    static void write(String topic, int partition, long up, long down) throws Exception {
        OffsetSync sync = new OffsetSync(new TopicPartition(topic, partition), up, down);
        print("topic", topic, "partition", partition, "upstream", up, "downstream", down,
            "key", HEX.formatHex((byte[]) call(OffsetSync.class, sync, "recordKey")),
            "value", HEX.formatHex((byte[]) call(OffsetSync.class, sync, "recordValue")));
    }

    static void read(String key, String value) {
        byte[] k = key == null ? null : HEX.parseHex(key);
        byte[] v = value == null ? null : HEX.parseHex(value);
        try {
            OffsetSync sync = OffsetSync.deserializeRecord(new ConsumerRecord<>("syncs", 0, 0, k, v));
            print("read", true, "key", key, "value", value, "topic", sync.topicPartition().topic(), "partition", sync.topicPartition().partition(),
                "upstream", sync.upstreamOffset(), "downstream", sync.downstreamOffset());
        } catch (Exception e) {
            print("read", true, "key", key, "value", value, "error", e.getClass().getSimpleName());
        }
    }

    static void name(String policy, String separator, String location, String from, String to) throws Exception {
        Map<String, String> config = new HashMap<>();
        config.put("name", "MirrorSourceConnector");
        config.put("connector.class", "MirrorSourceConnector");
        config.put("source.cluster.alias", from);
        config.put("target.cluster.alias", to);
        config.put("offset-syncs.topic.location", location);
        config.put("replication.policy.class", "org.apache.kafka.connect.mirror." + policy + "ReplicationPolicy");
        config.put("replication.policy.separator", separator);
        print("policy", policy, "separator", separator, "location", location, "from", from, "to", to,
            "name", call(MirrorSourceConfig.class, new MirrorSourceConfig(config), "offsetSyncsTopic"));
    }

    // Not all that is called is public.
    static Object call(Class<?> c, Object of, String name) throws Exception {
        Method m = c.getDeclaredMethod(name);
        m.setAccessible(true);
        return m.invoke(of);
    }

    // One JSON object: names and values by turns; what is null is left out.
    static void print(Object... pairs) {
        StringBuilder line = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            if (pairs[i + 1] == null) {
                continue;
            }
            if (line.length() > 1) {
                line.append(',');
            }
            line.append('"').append(pairs[i]).append("\":");
            if (pairs[i + 1] instanceof String) {
                line.append('"').append(((String) pairs[i + 1]).replace("\\", "\\\\")).append('"');
            } else {
                line.append(pairs[i + 1]);
            }
        }
        System.out.writeBytes(line.append("}\n").toString().getBytes(StandardCharsets.UTF_8));
    }
}
