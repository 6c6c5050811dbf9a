import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Semaphore;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes decisions.txt: which offset syncs MirrorMaker's own OffsetSyncWriter
 * (and PartitionState in it) queues at which record of random sequences, and at
 * a commit. In this folder, with the image of ../../../integration/image (the
 * arguments are the seed and how many sequences):
 *
 *   docker run --rm -v "$PWD:/v:ro" --entrypoint java mirror-test/kafka:4.3.1 \
 *     -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '/opt/kafka/libs/*' /v/Decisions.java 1 36 > decisions.txt
 *
 * Lines: "lag N" begins a sequence; "U D" is a record of source offset U, stored
 * at D; "flush" a commit. What is queued then follows as "= U D".
 */
public class Decisions {
    static final long[] LAGS = {0, 1, 2, 10, 100, 100, 100, 1000, Long.MAX_VALUE};
    static final int STEPS = 60;

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[0]));
        int sequences = Integer.parseInt(args[1]);
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < sequences; i++) {
            sequence(random, LAGS[i % LAGS.length], out);
        }
        System.out.print(out);
    }

    // Nothing of the writer is public.
    static Method method(Class<?> c, String name, Class<?>... args) throws Exception {
        Method m = c.getDeclaredMethod(name, args);
        m.setAccessible(true);
        return m;
    }

    static void sequence(Random random, long lag, StringBuilder out) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.connect.mirror.OffsetSyncWriter");
        Constructor<?> make = type.getDeclaredConstructor(KafkaProducer.class, String.class, Semaphore.class, long.class);
        make.setAccessible(true);
        Object writer = make.newInstance(null, "syncs", new Semaphore(10), lag);
        Method record = method(type, "maybeQueueOffsetSyncs", TopicPartition.class, long.class, long.class);
        Method promote = method(type, "promoteDelayedOffsetSyncs");
        Map<?, ?> pending = (Map<?, ?>) method(type, "getPendingOffsetSyncs").invoke(writer);
        TopicPartition partition = new TopicPartition("t", 0);

        out.append("lag ").append(lag).append('\n');
        // Some begin at 0, some far up.
        long up = random.nextInt(3) == 0 ? 0 : random.nextLong() >>> (2 + random.nextInt(50));
        long down = random.nextInt(3) == 0 ? 0 : random.nextLong() >>> (2 + random.nextInt(50));
        for (int i = 0; i < STEPS; i++) {
            if (random.nextInt(12) == 0) {
                out.append("flush\n");
                promote.invoke(writer);
            } else {
                out.append(up).append(' ').append(down).append('\n');
                record.invoke(writer, partition, up, down);
            }
            for (Object sync : new ArrayList<>(pending.values())) {
                long u = (long) method(sync.getClass(), "upstreamOffset").invoke(sync);
                long d = (long) method(sync.getClass(), "downstreamOffset").invoke(sync);
                out.append("= ").append(u).append(' ').append(d).append('\n');
            }
            pending.clear();
            up = Math.max(0, up + step(random, lag, 20));
            down = Math.max(0, down + step(random, lag, 6));
        }
    }

    // Mostly one on; else a gap, the same again, back, or about the lag.
    static long step(Random random, long lag, int rarity) {
        if (random.nextInt(rarity) != 0) {
            return 1;
        }
        switch (random.nextInt(5)) {
            case 0:
                return 0;
            case 1:
                return -1 - random.nextInt(30);
            case 2:
                return 2 + random.nextInt(30);
            default:
                return Math.min(lag, 2000) + random.nextInt(4) - 1;
        }
    }
}
