import java.io.*;
import java.nio.ByteBuffer;
import java.security.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;

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
 * <p>PROTOCOL is Kafka's group.protocol: classic, consumer, or streams/GUARANTEE, with Kafka Streams'
 * processing.guarantee. A Streams application keeps no state. It cannot stop anywhere: it stops once it has read
 * the given part of any partition, or all. It goes on as a "group" only, and commits then, too.
 *
 * <p>Prints, for the consumer with the number N, "N at TOPIC PARTITION OFFSET" for
 * each partition, -1 where nothing says where to go on, which is at the beginning; and "N read TOPIC PARTITION DIGEST"
 * for each record. Consumers and topics are numbered as they are given, from 0.
 */
public class FailOver {
    /** Consumers wait most of the time: for brokers, or for the next heartbeat. */
    static final int AT_ONCE = 6;
    static final String STREAMS = "streams/";

    static PrintStream out;
    static String bootstrap;
    static List<String> topics;

    final int number;
    final Consumer<byte[], byte[]> c;
    final String group;
    final String guarantee; // of a Streams application, null: it is none
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
        guarantee = protocol.startsWith(STREAMS) ? protocol.substring(STREAMS.length()) : null;
        // Beside a Streams application it only looks.
        c = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", guarantee == null ? protocol : "classic",
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
        if (guarantee != null) {
            streams(all, Map.of(), until, part < 1);
            at(all, c.committed(new HashSet<>(all)));
            return;
        }
        c.subscribe(topics);
        read(until, r -> {
            print(r);
            committed.put(partition(r), new OffsetAndMetadata(r.offset() + 1, r.leaderEpoch(), group + " after " + r.offset()));
        });
        if (part >= 1)
            for (TopicPartition p : all) committed.put(p, new OffsetAndMetadata(c.position(p), Optional.empty(), "end of " + group));
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
        if (guarantee != null) {
            streams(all, from, ends, false);
            return;
        }
        if (how.equals("group")) c.subscribe(topics); else seek(all, from);
        read(ends, this::print);
    }

    /** Assigns all, where they are, or at the beginning. */
    void seek(List<TopicPartition> all, Map<TopicPartition, OffsetAndMetadata> from) {
        c.assign(all);
        for (TopicPartition p : all)
            if (from.get(p) == null) c.seekToBeginning(List.of(p)); else c.seek(p, from.get(p));
    }

    interface Reader { void read(ConsumerRecord<byte[], byte[]> r) throws Exception; }

    /** Reads up to the given offsets. */
    void read(Map<TopicPartition, Long> until, Reader each) throws Exception {
        Set<TopicPartition> open = new HashSet<>(until.keySet());
        while (!open.isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(100)))
                if (r.offset() < until.get(partition(r))) each.read(r);
            for (TopicPartition p : c.assignment())
                if (open.contains(p) && c.position(p) >= until.get(p)) {
                    open.remove(p);
                    c.pause(List.of(p));
                }
        }
    }

    static TopicPartition partition(ConsumerRecord<?, ?> r) { return new TopicPartition(r.topic(), r.partition()); }

    /**
     * Has the application read from where its group is until it has the last record before each of the given offsets, or
     * before any. from is where that is. Each topic has tasks of its own, for no two have to have as many partitions.
     */
    void streams(List<TopicPartition> all, Map<TopicPartition, OffsetAndMetadata> from, Map<TopicPartition, Long> until, boolean any)
        throws Exception {
        Map<TopicPartition, Long> last = new HashMap<>();
        seek(all, from);
        read(until, r -> last.put(partition(r), r.offset()));
        if (last.isEmpty()) return;
        int left = any ? last.size() - 1 : 0;
        CountDownLatch done = new CountDownLatch(1), closing = new CountDownLatch(1);
        ProcessorSupplier<byte[], byte[], Void, Void> processor = () -> new ContextualProcessor<>() {
            @Override
            public void process(Record<byte[], byte[]> r) {
                RecordMetadata m = context().recordMetadata().get();
                print(m.topic(), m.partition(), r.timestamp(), r.key(), r.value());
                last.computeIfPresent(new TopicPartition(m.topic(), m.partition()), (p, at) -> at <= m.offset() ? null : at);
                if (last.size() > left) return;
                done.countDown();
                try {
                    closing.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
        Topology topology = new Topology();
        for (String t : topics) {
            topology.addSource("read " + t, new ByteArrayDeserializer(), new ByteArrayDeserializer(), t);
            topology.addProcessor("print " + t, processor, "read " + t);
        }
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", bootstrap, "application.id", group, "group.protocol", "streams",
            "processing.guarantee", guarantee, "main.consumer.isolation.level", "read_committed", "state.dir", "/tmp/" + group + "." + number));
        AtomicReference<Throwable> failure = new AtomicReference<>();
        try (KafkaStreams app = new KafkaStreams(topology, config)) {
            app.setUncaughtExceptionHandler(e -> {
                failure.set(e);
                done.countDown();
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            app.setStateListener((now, was) -> { if (now == KafkaStreams.State.PENDING_SHUTDOWN) closing.countDown(); });
            app.start();
            done.await();
            // Where it stays in its group, that has a member until the session ends.
            if (!app.close(CloseOptions.timeout(Duration.ofMinutes(1)).withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)))
                throw new IllegalStateException("the application does not end");
        }
        if (failure.get() != null) throw new IllegalStateException(failure.get());
    }

    void at(List<TopicPartition> all, Map<TopicPartition, OffsetAndMetadata> offsets) {
        for (TopicPartition p : all) {
            OffsetAndMetadata o = offsets.get(p);
            line("at", p.topic(), p.partition()).append(o == null ? -1 : o.offset()).append('\n');
        }
    }

    void print(ConsumerRecord<byte[], byte[]> r) { print(r.topic(), r.partition(), r.timestamp(), r.key(), r.value()); }

    void print(String topic, int partition, long timestamp, byte[] key, byte[] value) {
        MessageDigest d;
        try {
            d = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
        d.update(ByteBuffer.allocate(8).putLong(timestamp).array());
        for (byte[] b : new byte[][] {key, value}) {
            d.update(ByteBuffer.allocate(4).putInt(b == null ? -1 : b.length).array());
            if (b != null) d.update(b);
        }
        line("read", topic, partition).append(HexFormat.of().formatHex(d.digest(), 0, 8)).append('\n');
    }

    StringBuilder line(String what, String topic, int partition) {
        return lines.append(number).append(' ').append(what).append(' ').append(topics.indexOf(topic)).append(' ').append(partition).append(' ');
    }
}
