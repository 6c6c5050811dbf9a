/* The contract mirror_v1 for guests in C: names, layouts and codes of ../SPEC.md,
 * minor 1. Freestanding: it needs no C library, and little-endian is what WebAssembly
 * is. A plugin includes it, defines hooks with MIRROR_HOOK, and is built with
 *
 *   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o plugin.wasm plugin.c
 *
 * MIRROR_GUEST(size) defines what every guest must export; size is the room for
 * frames, 1 << 20 for the largest.
 */
#ifndef MIRROR_H
#define MIRROR_H

typedef unsigned char mirror_u8;
typedef unsigned short mirror_u16;
typedef unsigned int mirror_u32;
typedef int mirror_i32;
typedef long long mirror_i64;
typedef unsigned long long mirror_u64;

#define MIRROR_MINOR 1
#define MIRROR_MAGIC 0x3152494Du
#define MIRROR_NO_ENTRY 0xFFFFFFFFu

/* Statuses. */
enum {
	MIRROR_OK = 0,
	MIRROR_FATAL = -1,
	MIRROR_RETRY = -2,
	MIRROR_REJECT = -3,
	MIRROR_BAD_INPUT = -4,
	MIRROR_UNSUPPORTED = -5,
	MIRROR_NO_MEMORY = -6,
	MIRROR_STATE_FULL = -7,
	MIRROR_NOT_FOUND = -8,
	MIRROR_LIMIT = -102
};

/* Flags of a frame. */
enum { MIRROR_FLUSH = 1, MIRROR_REPLAY = 2 };

/* Events of partitions. */
enum {
	MIRROR_NONE = 0,
	MIRROR_ASSIGNED = 1,
	MIRROR_REVOKED = 2,
	MIRROR_LOG_START_MOVED = 3,
	MIRROR_RECREATED = 4,
	MIRROR_TRUNCATED = 5
};

/* Tags of extras. */
enum {
	MIRROR_TAG_NOW = 1,
	MIRROR_TAG_ATTEMPT = 2,
	MIRROR_TAG_LANE = 3,
	MIRROR_TAG_FLOW = 4,
	MIRROR_TAG_GENERATION = 5,
	MIRROR_TAG_CONFIG = 6,
	MIRROR_TAG_FLAT = 7,
	MIRROR_TAG_BLOB = 8,
	MIRROR_TAG_PLUGIN = 9,
	MIRROR_TAG_HOST = 10,
	MIRROR_TAG_FROM = 11,
	MIRROR_TAG_TO = 12
};

enum { MIRROR_DEBUG = 0, MIRROR_INFO = 1, MIRROR_WARN = 2, MIRROR_ERROR = 3 };
enum { MIRROR_COUNTER = 0, MIRROR_GAUGE = 1 };
enum { MIRROR_ADD = 0, MIRROR_SET = 1 };

typedef struct {
	mirror_u32 magic;
	mirror_u16 header_len, kind;
	mirror_u32 count;
	mirror_u16 stride, flags;
	mirror_u32 entries, blobs, extras, total_len;
} mirror_frame;

typedef struct {
	mirror_i64 src_first, src_last, dst_first, dst_last, max_timestamp;
	mirror_u32 src_topic;
	mirror_u16 src_topic_len, dst_topic_len;
	mirror_u32 dst_topic;
	mirror_i32 src_partition, dst_partition;
	mirror_u32 records, dropped;
	mirror_i32 leader_epoch;
} mirror_commit;

typedef struct {
	mirror_i64 log_start, position, dst_end;
	mirror_u32 src_topic;
	mirror_u16 src_topic_len, dst_topic_len;
	mirror_u32 dst_topic;
	mirror_i32 partition;
	mirror_u32 event, zero;
	mirror_u8 src_topic_id[16], dst_topic_id[16];
} mirror_partition;

typedef struct {
	mirror_i64 offset, log_start, position, dst_end;
	mirror_u32 group;
	mirror_u16 group_len, src_topic_len;
	mirror_u32 src_topic;
	mirror_i32 partition;
	mirror_u32 metadata;
	mirror_u16 metadata_len, zero;
	mirror_i32 leader_epoch;
	mirror_u32 zero2;
	mirror_u64 zero3;
} mirror_group;

typedef struct {
	mirror_u16 tag, zero;
	mirror_u32 len;
	mirror_u8 bytes[];
} mirror_extra;

/* Emits. A save and a schema are mirror_emit_head and bytes. */
enum {
	MIRROR_EMIT_OFFSET_SYNC = 1,
	MIRROR_EMIT_RECORD = 2,
	MIRROR_EMIT_TRANSLATION = 3,
	MIRROR_EMIT_SAVE = 4,
	MIRROR_EMIT_SCHEMA = 5
};

typedef struct {
	mirror_u16 kind, zero;
	mirror_u32 entry;
} mirror_emit_head;

typedef struct {
	mirror_emit_head head;
	mirror_i64 upstream, downstream;
} mirror_offset_sync;

/* Topic, key, value and headers follow. */
typedef struct {
	mirror_emit_head head;
	mirror_i32 partition;
	mirror_u16 topic_len, headers;
	mirror_i64 timestamp;
	mirror_i32 key_len, value_len;
} mirror_record;

typedef struct {
	mirror_emit_head head;
	mirror_i64 offset;
	mirror_u16 outcome, reason;
	mirror_u32 zero;
} mirror_translation;

/* One that says which run of records it goes by. */
typedef struct {
	mirror_translation translation;
	mirror_i64 run_first, run_last, run_target;
} mirror_translation_by_run;

_Static_assert(sizeof(mirror_frame) == 32, "header");
_Static_assert(sizeof(mirror_commit) == 72, "commit entry");
_Static_assert(sizeof(mirror_partition) == 80, "partition entry");
_Static_assert(sizeof(mirror_group) == 72, "group entry");
_Static_assert(sizeof(mirror_offset_sync) == 24, "offset sync");
_Static_assert(sizeof(mirror_record) == 32, "record");
_Static_assert(sizeof(mirror_translation) == 24, "translation");
_Static_assert(sizeof(mirror_translation_by_run) == 48, "translation with a run");

#define MIRROR_IMPORT(name) __attribute__((import_module("mirror_v1"), import_name(#name)))
#define MIRROR_EXPORT(name) __attribute__((export_name(#name)))

MIRROR_IMPORT(emit) mirror_i32 mirror_emit(const void *p, mirror_u32 len);
MIRROR_IMPORT(log) mirror_i32 mirror_log(mirror_i32 level, const void *p, mirror_u32 len);
MIRROR_IMPORT(fail) mirror_i32 mirror_fail(mirror_i32 code, const void *p, mirror_u32 len);
MIRROR_IMPORT(state_get)
mirror_i32 mirror_state_get(mirror_u32 entry, const void *key, mirror_u32 key_len, void *buf, mirror_u32 limit);
MIRROR_IMPORT(state_put)
mirror_i32 mirror_state_put(mirror_u32 entry, const void *key, mirror_u32 key_len, const void *value, mirror_i32 value_len);
MIRROR_IMPORT(state_next)
mirror_i32 mirror_state_next(mirror_u32 entry, const void *key, mirror_u32 key_len, void *buf, mirror_u32 limit);
MIRROR_IMPORT(metric_define) mirror_i32 mirror_metric_define(mirror_i32 type, const void *p, mirror_u32 len);
MIRROR_IMPORT(metric) mirror_i32 mirror_metric(mirror_i32 id, mirror_i32 op, mirror_i64 value);

/* A hook: MIRROR_HOOK(on_commit) { … frame, len … return MIRROR_OK; } */
#define MIRROR_HOOK(name) MIRROR_EXPORT(mirror_##name) mirror_i32 mirror_##name(mirror_frame *frame, mirror_u32 len)

#define MIRROR_GUEST(size) \
	static mirror_u64 mirror_arena[(size) / 8]; \
	MIRROR_EXPORT(mirror_abi_1) mirror_i32 mirror_abi(void) { return MIRROR_MINOR; } \
	MIRROR_EXPORT(mirror_alloc) void *mirror_alloc(mirror_u32 n) { return n <= sizeof mirror_arena ? mirror_arena : (void *)0; }

/* What is at an offset into a frame; entry i of one. */
static inline void *mirror_at(mirror_frame *f, mirror_u32 offset) { return (mirror_u8 *)f + offset; }
static inline void *mirror_entry(mirror_frame *f, mirror_u32 i) { return mirror_at(f, f->entries + i * f->stride); }

/* The extra of that tag, 0: there is none. */
static inline mirror_extra *mirror_find(mirror_frame *f, mirror_u16 tag) {
	if (!f->extras) return 0;
	for (mirror_extra *x = mirror_at(f, f->extras); x->tag; x = (mirror_extra *)(x->bytes + ((x->len + 7) & ~7u)))
		if (x->tag == tag) return x;
	return 0;
}

static inline mirror_i32 mirror_emit_sync(mirror_u32 entry, mirror_i64 upstream, mirror_i64 downstream) {
	mirror_offset_sync s = {{MIRROR_EMIT_OFFSET_SYNC, 0, entry}, upstream, downstream};
	return mirror_emit(&s, sizeof s);
}

#endif
