import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;

/**
 * Writes checkpoints.jsonl: what MirrorMaker's own classes make of checkpoints, and
 * how they name the topic. In this folder, with the image of
 * ../../../integration/image:
 *
 *   docker run --rm -v "$PWD:/v:ro" --entrypoint java mirror-test/kafka:4.3.1 \
 *     -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp '/opt/kafka/libs/*' /v/Checkpoints.java > checkpoints.jsonl
 */
public class Checkpoints {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        write("g", "A.t", 0, 10, 7, "");
        write("g", "A.t", 0, 0, 0, "");
        write("", "t", 0, 1, 2, "");
        write("orders-service", "us.orders", 11, 1L << 40, (1L << 40) - 3, "consumer-1");
        write("x".repeat(300), "t".repeat(249), Integer.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, "m".repeat(4096));
        write("groups are any text: \u00fc\u6f22\ud83d\ude00", "A.t", 255, 256, 65536, "metadata too: \u00e9");

        String key = "0001670003412e7400000000";
        String value = "0000000000000000000a00000000000000070000";
        read(key, value);
        read(key + "ff", value);
        read(key, value + "00");
        for (int n = 0; n < key.length(); n += 2) {
            read(key.substring(0, n), value);
        }
        for (int n = 0; n < value.length(); n += 2) {
            read(key, value.substring(0, n));
        }
        read("ffff0003412e7400000000", value);
        read("000167ffff00000000", value);
        read("000167000000000000", value);
        read("0001670003412e74ffffffff", value);
        read("0001ff0003412e7400000000", value);
        read(key, "0000ffffffffffffffff00000000000000070000");
        read(key, "0000000000000000000affffffffffffffff0000");
        read(key, "0000000000000000000a0000000000000007ffff");
        read(null, value);
        read(key, null);

        for (String policy : new String[] {"Default", "Identity"}) {
            for (String separator : new String[] {".", "_", "--"}) {
                name(policy, separator, "A");
                name(policy, separator, "us.east");
            }
        }
    }

    static void write(String group, String topic, int partition, long up, long down, String metadata) throws Exception {
        Checkpoint c = new Checkpoint(group, new TopicPartition(topic, partition), up, down, metadata);
        print("group", group, "topic", topic, "partition", partition, "upstream", up, "downstream", down, "metadata", metadata,
            "key", HEX.formatHex((byte[]) call(c, "recordKey")), "value", HEX.formatHex((byte[]) call(c, "recordValue")));
    }

    static void read(String key, String value) {
        byte[] k = key == null ? null : HEX.parseHex(key);
        byte[] v = value == null ? null : HEX.parseHex(value);
        try {
            Checkpoint c = Checkpoint.deserializeRecord(new ConsumerRecord<>("checkpoints", 0, 0, k, v));
            print("read", true, "key", key, "value", value, "group", c.consumerGroupId(), "topic", c.topicPartition().topic(),
                "partition", c.topicPartition().partition(), "upstream", c.upstreamOffset(), "downstream", c.downstreamOffset(), "metadata", c.metadata());
        } catch (Exception e) {
            print("read", true, "key", key, "value", value, "error", e.getClass().getSimpleName());
        }
    }

    static void name(String policy, String separator, String from) {
        Map<String, String> config = new HashMap<>();
        config.put("replication.policy.separator", separator);
        DefaultReplicationPolicy p = policy.equals("Default") ? new DefaultReplicationPolicy() : new IdentityReplicationPolicy();
        p.configure(config);
        print("policy", policy, "separator", separator, "from", from, "name", p.checkpointsTopic(from));
    }

    // Not all that is called is public.
    static Object call(Object of, String name) throws Exception {
        Method m = of.getClass().getDeclaredMethod(name);
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
