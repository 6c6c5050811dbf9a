import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

import org.apache.kafka.connect.mirror.ConfigPropertyFilter;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.DefaultTopicFilter;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.ReplicationPolicy;
import org.apache.kafka.connect.mirror.SourceAndTarget;
import org.apache.kafka.connect.mirror.TopicFilter;

/**
 * Writes vectors.jsonl: what MirrorMaker's own classes say of odd topic names.
 * In this folder, with the image of ../../../integration/image:
 *
 *   docker run --rm -v "$PWD:/v:ro" --entrypoint java mirror-test/kafka:4.3.1 \
 *     -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '/opt/kafka/libs/*' /v/Vectors.java > vectors.jsonl
 */
public class Vectors {
    // Each row: policy, separator, from, to, topics, topics.exclude (null: the default).
    static final String[][] FLOWS = {
        {"default", ".", "A", "B", null, null},
        {"default", "_", "A", "B", ".*", ""},
        {"default", "__", "us.east", "eu-west", "orders.*|.*_b", "mm2.*\\.internal,.*\\.replica"},
        {"default", "-", "A", "heartbeats", "[a-z]+,x.*y", "heartbeats|a"},
        {"identity", ".", "A", "B", null, null},
        {"identity", "_", "B", "A", "(?i)ORDERS,\\Qa.b\\E,.+\\.internal", "a\\.b"},
    };

    static final String[] PARTS = {
        "", "a", "A", "B", "t", "orders", "heartbeats", "checkpoints", "internal", "mm2", "mm2-offsets", "__", "x-y",
    };

    static final String[] NAMES = {
        "orders", "ORDERS", "ordersB", "heartbeat", "myheartbeats", "my-heartbeats", "my_heartbeats", "heartbeats-2", "HEARTBEATS",
        "A.heartbeats", "B.heartbeats", "B.A.heartbeats", "A.B.heartbeats", "C.B.A.heartbeats", "A..heartbeats", "B_heartbeats",
        "A_heartbeats", "B_A_heartbeats", "C_my.heartbeats", "heartbeats.heartbeats", "heartbeats-t", "us.east__t", "eu-west__t",
        "eu-west__us.east__t", "us.east__eu-west__t", "us.east___t", "us.east____t", "us.east_____", "us.east____", "us.east__",
        "__consumer_offsets", "_schemas", "_confluent", "__", "_", "___", ".", "..", "...", ".hidden", "a.", "a..", "a..b", "..b", ".B.t",
        "mm2", "mm2.internal", "mm2-internal", "mm2_internal", "mm2internal", "mm2-offset-syncs.B.internal", "mm2-offset-syncs_B_internal",
        "mm2-offsets.A.internal", "mm2-configs.A.internal", "MM2.internal", "xmm2.internal", "A.mm2.internal", "mm2-x.internal.y",
        "A.checkpoints.internal", "A_checkpoints_internal", "A-checkpoints-internal", "us.east__checkpoints__internal",
        "checkpoints.internal", ".checkpoints.internal", "A.checkpoints.internal.x", "foo.internal", "foo-internal", "foo_internal",
        "t.replica", "t-replica", "A.t", "A.A.t", "B.t", "C.t", "C.B.t", "C.D.B.t", "C.D.t.B", "B", "B.", "B..", "B..t", "b.t", "BB.t",
        "A.B.t", "B.A.t", "A_t", "B_t", "C_B_t", "A-t", "heartbeats-heartbeats", "x-heartbeats-t", "x123y", "a", "ab", "a.b", "axb",
        "t_b", "orders_b", "1.2.3", "-", "--", "-t", "t-", "a-", "a--", "a--b", "A.t.with.many.dots",
    };

    public static void main(String[] args) throws Exception {
        for (String[] f : FLOWS) {
            Map<String, String> config = new HashMap<>();
            config.put("source.cluster.alias", f[2]);
            config.put("target.cluster.alias", f[3]);
            config.put("replication.policy.separator", f[1]);
            if (f[4] != null) {
                config.put("topics", f[4]);
                config.put("topics.exclude", f[5]);
            }
            DefaultReplicationPolicy policy = f[0].equals("identity") ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
            policy.configure(config);
            DefaultTopicFilter filter = new DefaultTopicFilter();
            filter.configure(config);

            // The connector's constructor and the two methods are not public.
            Constructor<MirrorSourceConnector> make = MirrorSourceConnector.class.getDeclaredConstructor(
                SourceAndTarget.class, ReplicationPolicy.class, TopicFilter.class, ConfigPropertyFilter.class);
            make.setAccessible(true);
            MirrorSourceConnector connector = make.newInstance(new SourceAndTarget(f[2], f[3]), policy, filter, null);
            Method cycle = MirrorSourceConnector.class.getDeclaredMethod("isCycle", String.class);
            Method mirrors = MirrorSourceConnector.class.getDeclaredMethod("shouldReplicateTopic", String.class);
            cycle.setAccessible(true);
            mirrors.setAccessible(true);

            TreeSet<String> topics = new TreeSet<>(List.of(NAMES));
            for (String a : PARTS) {
                for (String b : PARTS) {
                    topics.add(a + f[1] + b);
                }
            }
            print("flow", f[0], "separator", f[1], "from", f[2], "to", f[3], "topics", f[4], "exclude", f[5]);
            for (String t : topics) {
                print("topic", t,
                    "target", policy.formatRemoteTopic(f[2], t),
                    "source", policy.topicSource(t),
                    "upstream", policy.upstreamTopic(t),
                    "original", policy.originalTopic(t),
                    "internal", policy.isInternalTopic(t),
                    "heartbeats", policy.isHeartbeatsTopic(t),
                    "cycle", cycle.invoke(connector, t),
                    "mirrors", mirrors.invoke(connector, t));
            }
        }
    }

    // One JSON object: names and values by turns; what is null or false is left out.
    static void print(Object... pairs) {
        StringBuilder line = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            if (pairs[i + 1] == null || pairs[i + 1].equals(false)) {
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
        System.out.println(line.append('}'));
    }
}
