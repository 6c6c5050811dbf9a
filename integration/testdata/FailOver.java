import java.io.*;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Consumer groups that stop, and go on elsewhere.
 *
 * <p>stop BOOTSTRAP TOPIC,... "GROUP PROTOCOL PART"...: each consumer reads, in each partition, the records
 * of the given part of its offsets (from 0 to 1) and commits the offset after the last of them; where it reads all, its
 * position, which is behind the markers of transactions too.
 *
 * <p>go-on BOOTSTRAP TOPIC,... "GROUP PROTOCOL HOW ARGUMENT"...: each reads all from where it goes on, and commits
 * nothing. HOW is "group": where the group has committed; "translated ALIAS": where Kafka's own client finds it to be
 * from MirrorMaker's checkpoints; or "offsets TOPIC/PARTITION=OFFSET,...".
 *
 * <p>PROTOCOL is Kafka's group.protocol. Prints, for the consumer with the number N, "N at TOPIC PARTITION OFFSET" for
 * each partition, -1 where nothing says where to go on, which is at the beginning; and "N read TOPIC PARTITION DIGEST"
 * for each record. Consumers and topics are numbered as they are given, from 0.
 */
public class FailOver {
    /** Consumers wait most of the time: for brokers, or for the next heartbeat. */
    static final int AT_ONCE = 6;

    static PrintStream out;
    static String bootstrap;
    static List<String> topics;

    final int number;
    final Consumer<byte[], byte[]> c;
    final String group;
    final StringBuilder lines = new StringBuilder();

    public static void main(String[] args) throws Exception {
        out = new PrintStream(new FileOutputStream(FileDescriptor.out));
        bootstrap = args[1];
        topics = List.of(args[2].split(","));
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 3; i < args.length; i++) {
            int number = i - 3;
            String[] job = args[i].split(" ");
            all.add(pool.submit(() -> { run(number, args[0], job); return null; }));
        }
        pool.shutdown();
        for (Future<?> f : all) f.get();
    }

    static void run(int number, String what, String[] job) throws Exception {
        FailOver f = new FailOver(number, job[0], job[1]);
        try (f.c) {
            if (what.equals("stop")) f.stop(Double.parseDouble(job[2]));
            else f.goOn(job[2], job.length > 3 ? job[3] : "");
        }
        synchronized (out) {
            out.print(f.lines);
            if (out.checkError()) throw new IOException("the output is closed");
        }
    }

    FailOver(int number, String group, String protocol) {
        this.number = number;
        this.group = group;
        c = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", protocol,
            "isolation.level", "read_committed", "enable.auto.commit", "false", "auto.offset.reset", "earliest",
            "max.poll.records", "5000"), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    List<TopicPartition> partitions() {
        List<TopicPartition> all = new ArrayList<>();
        for (String t : topics) c.partitionsFor(t).forEach(p -> all.add(new TopicPartition(t, p.partition())));
        return all;
    }

    void stop(double part) throws Exception {
        List<TopicPartition> all = partitions();
        Map<TopicPartition, Long> starts = c.beginningOffsets(all), ends = c.endOffsets(all), until = new HashMap<>();
        Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
        for (TopicPartition p : all) {
            until.put(p, starts.get(p) + (long) ((ends.get(p) - starts.get(p)) * part));
            committed.put(p, new OffsetAndMetadata(starts.get(p), Optional.empty(), "start of " + group));
        }
        c.subscribe(topics);
        Set<TopicPartition> open = new HashSet<>(all);
        while (!open.isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(100))) {
                TopicPartition p = new TopicPartition(r.topic(), r.partition());
                if (r.offset() >= until.get(p)) continue;
                print(r);
                committed.put(p, new OffsetAndMetadata(r.offset() + 1, r.leaderEpoch(), group + " after " + r.offset()));
            }
            for (TopicPartition p : c.assignment())
                if (open.contains(p) && c.position(p) >= until.get(p)) {
                    open.remove(p);
                    if (part >= 1) committed.put(p, new OffsetAndMetadata(c.position(p), Optional.empty(), "end of " + group));
                    c.pause(List.of(p));
                }
        }
        c.commitSync(committed);
        at(all, committed);
    }

    void goOn(String how, String argument) throws Exception {
        List<TopicPartition> all = partitions();
        Map<TopicPartition, OffsetAndMetadata> from = new HashMap<>();
        switch (how) {
            case "group" -> from = c.committed(new HashSet<>(all));
            case "translated" -> from = RemoteClusterUtils.translateOffsets(
                Map.of("bootstrap.servers", bootstrap), argument, group, Duration.ofSeconds(30));
            case "offsets" -> {
                for (String one : argument.split(",")) {
                    if (one.isEmpty()) continue;
                    String[] s = one.split("[/=]");
                    from.put(new TopicPartition(s[0], Integer.parseInt(s[1])), new OffsetAndMetadata(Long.parseLong(s[2])));
                }
            }
            default -> throw new IllegalArgumentException(how);
        }
        at(all, from);
        Map<TopicPartition, Long> ends = c.endOffsets(all);
        if (how.equals("group")) {
            c.subscribe(topics);
        } else {
            c.assign(all);
            for (TopicPartition p : all)
                if (from.get(p) == null) c.seekToBeginning(List.of(p)); else c.seek(p, from.get(p));
        }
        Set<TopicPartition> open = new HashSet<>(all);
        while (!open.isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(100))) print(r);
            for (TopicPartition p : c.assignment()) if (open.contains(p) && c.position(p) >= ends.get(p)) open.remove(p);
        }
    }

    void at(List<TopicPartition> all, Map<TopicPartition, OffsetAndMetadata> offsets) {
        for (TopicPartition p : all) {
            OffsetAndMetadata o = offsets.get(p);
            line("at", p.topic(), p.partition()).append(o == null ? -1 : o.offset()).append('\n');
        }
    }

    void print(ConsumerRecord<byte[], byte[]> r) throws Exception {
        MessageDigest d = MessageDigest.getInstance("SHA-256");
        d.update(ByteBuffer.allocate(8).putLong(r.timestamp()).array());
        for (byte[] b : new byte[][] {r.key(), r.value()}) {
            d.update(ByteBuffer.allocate(4).putInt(b == null ? -1 : b.length).array());
            if (b != null) d.update(b);
        }
        line("read", r.topic(), r.partition()).append(HexFormat.of().formatHex(d.digest(), 0, 8)).append('\n');
    }

    StringBuilder line(String what, String topic, int partition) {
        return lines.append(number).append(' ').append(what).append(' ').append(topics.indexOf(topic)).append(' ').append(partition).append(' ');
    }
}
