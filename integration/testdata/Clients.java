import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/**
 * What Java's own clients write and read.
 *
 * <p>produce BOOTSTRAP TOPIC: writes to each partition with each codec, in batches that linger makes
 * large, then in transactions of which every other one is aborted.
 *
 * <p>dump BOOTSTRAP TOPIC: prints all that a read-committed consumer sees, partition by partition.
 */
public class Clients {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("produce")) produce(args[1], args[2]);
        else dump(args[1], args[2]);
    }

    static void produce(String bootstrap, String topic) throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "compression.type", codec,
                "linger.ms", "20", "batch.size", "100000"));
            try (Producer<byte[], byte[]> p = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
                int partitions = p.partitionsFor(topic).size();
                for (int n = 0; n < 600; n++) send(p, topic, n % partitions, codec + "-" + n, n);
            }
            config.put("transactional.id", topic + "-" + codec);
            try (Producer<byte[], byte[]> p = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
                p.initTransactions();
                for (int t = 0; t < 6; t++) {
                    p.beginTransaction();
                    for (int n = 0; n < 20; n++) send(p, topic, n % 2, codec + "-transaction-" + t + "-" + n, n);
                    p.flush();
                    if (t % 2 == 0) p.commitTransaction(); else p.abortTransaction();
                }
            }
        }
    }

    static void send(Producer<byte[], byte[]> p, String topic, int partition, String text, int n) {
        byte[] b = text.repeat(1 + n % 7).getBytes(StandardCharsets.UTF_8);
        var r = new ProducerRecord<>(topic, partition, 1_700_000_000_000L - n % 13, n % 5 == 0 ? null : b, n % 11 == 0 ? null : b);
        for (int h = 0; h < n % 4; h++) r.headers().add("h", h == 2 ? null : b);
        p.send(r, (m, e) -> { if (e != null) { e.printStackTrace(); Runtime.getRuntime().halt(1); } });
    }

    static void dump(String bootstrap, String topic) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        try (Consumer<byte[], byte[]> c = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = new ArrayList<>();
            c.partitionsFor(topic).forEach(p -> all.add(new TopicPartition(topic, p.partition())));
            all.sort(Comparator.comparingInt(TopicPartition::partition));
            for (TopicPartition p : all) {
                c.assign(List.of(p));
                c.seekToBeginning(List.of(p));
                long end = c.endOffsets(List.of(p)).get(p);
                while (c.position(p) < end)
                    for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(200))) {
                        StringBuilder s = new StringBuilder(p.partition() + " " + r.timestampType() + ":" + r.timestamp()
                            + " " + text(r.key()) + " " + text(r.value()));
                        for (Header h : r.headers()) s.append(" ").append(h.key()).append("=").append(text(h.value()));
                        System.out.println(s);
                    }
            }
        }
    }

    static String text(byte[] b) { return b == null ? "<null>" : "'" + new String(b, StandardCharsets.UTF_8) + "'"; }
}
