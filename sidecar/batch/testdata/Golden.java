import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Writes record sets as Kafka's own library makes them, one file each, into the directory given as argument:
 * java -cp 'kafka-clients.jar:lz4-java.jar:snappy-java.jar:zstd-jni.jar:slf4j-api.jar' Golden.java DIR
 */
public class Golden {
    static final long T = 1_700_000_000_000L;
    static Path dir;

    static byte[] b(String s) { return s == null ? null : s.getBytes(); }

    static void fill(MemoryRecordsBuilder w, boolean headers) {
        Header[] none = {}, some = {new RecordHeader("h", null), new RecordHeader("h", b("x")), new RecordHeader("", b(""))};
        w.append(T, null, b("null key"), none);
        w.append(T + 5, b(""), null, none);
        w.append(T - 3, b("key"), b(""), headers ? some : none);
        w.append(T + 1000, b("large"), b("0123456789".repeat(20)), none);
    }

    static MemoryRecords batch(byte magic, Compression c, TimestampType type, long base, long pid, short epoch, int seq, boolean txn) {
        MemoryRecordsBuilder w = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic, c, type, base, T + 77, pid, epoch, seq, txn, 3);
        fill(w, magic == 2);
        return w.build();
    }

    static void write(String name, MemoryRecords... sets) throws Exception {
        int n = 0;
        for (MemoryRecords s : sets) n += s.sizeInBytes();
        ByteBuffer all = ByteBuffer.allocate(n);
        for (MemoryRecords s : sets) all.put(s.buffer().duplicate());
        Files.write(dir.resolve(name + ".bin"), all.array());
    }

    static MemoryRecords clean(MemoryRecords in, boolean empty, String... gone) {
        MemoryRecords.RecordFilter f = new MemoryRecords.RecordFilter(T, 1000) {
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }
            protected boolean shouldRetainRecord(RecordBatch batch, org.apache.kafka.common.record.internal.Record r) {
                String key = r.key() == null ? "null" : java.nio.charset.StandardCharsets.UTF_8.decode(r.key()).toString();
                return !empty && !List.of(gone).contains(key);
            }
        };
        ByteBuffer out = ByteBuffer.allocate(1 << 16);
        in.filterTo(f, out, BufferSupplier.NO_CACHING);
        out.flip();
        return MemoryRecords.readableRecords(out);
    }

    public static void main(String[] args) throws Exception {
        dir = Path.of(args[0]);
        Compression[] cs = {Compression.NONE, Compression.gzip().build(), Compression.snappy().build(), Compression.lz4().build(), Compression.zstd().build()};
        for (Compression c : cs) {
            String n = c.type().name;
            write("v2-" + n, batch((byte) 2, c, TimestampType.CREATE_TIME, 100, 7, (short) 2, 40, false));
            write("v2-append-" + n, batch((byte) 2, c, TimestampType.LOG_APPEND_TIME, 100, -1, (short) -1, -1, false));
            MemoryRecords whole = batch((byte) 2, c, TimestampType.CREATE_TIME, 100, 7, (short) 2, 40, false);
            write("v2-holes-" + n, clean(whole, false, "null", "key"));
            if (c.type().id == 4) continue;
            for (byte magic = 0; magic < 2; magic++)
                write("v" + magic + "-" + n, batch(magic, c, TimestampType.CREATE_TIME, 100, -1, (short) -1, -1, false));
            write("v1-append-" + n, batch((byte) 1, c, TimestampType.LOG_APPEND_TIME, 100, -1, (short) -1, -1, false));
        }
        write("v2-empty", clean(batch((byte) 2, cs[0], TimestampType.CREATE_TIME, 100, 7, (short) 2, 40, false), true));
        // Producers 7 and 8: 7 aborts what it began at 100, then commits; 8 commits; markers bear a higher epoch.
        write("transactions",
            batch((byte) 2, cs[3], TimestampType.CREATE_TIME, 100, 7, (short) 2, 0, true),
            batch((byte) 2, cs[0], TimestampType.CREATE_TIME, 104, 8, (short) 0, 0, true),
            batch((byte) 2, cs[0], TimestampType.CREATE_TIME, 108, 9, (short) 0, 0, false),
            MemoryRecords.withEndTransactionMarker(112, T, 3, 7, (short) 3, new EndTransactionMarker(ControlRecordType.ABORT, 1)),
            batch((byte) 2, cs[0], TimestampType.CREATE_TIME, 113, 7, (short) 3, 0, true),
            MemoryRecords.withEndTransactionMarker(117, T, 3, 8, (short) 1, new EndTransactionMarker(ControlRecordType.COMMIT, 1)),
            MemoryRecords.withEndTransactionMarker(118, T, 3, 7, (short) 4, new EndTransactionMarker(ControlRecordType.COMMIT, 1)));
    }
}
