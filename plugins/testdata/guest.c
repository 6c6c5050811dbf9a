/* The guest of the tests: a well-behaved plugin, and every kind of hostile one.
 *
 * Its config says for each hook, and for abi and alloc, what to do there; without
 * that it does what "echo" does:
 *
 *   echo       emits each frame as a record for the topic "frames", and for each
 *              commit entry that left something on the target an offset sync
 *
 * With a "schema" in its config it has state. Built with GROUPS defined it has the
 * hook on_groups too: an offset that is copied becomes a hundred more, exactly; one
 * beyond that the end of the target, a bound; and that of a group "nobody" is not
 * answered.
 *
 * With "only = N" other things than echo happen only in frames with an entry of
 * partition N; with "attempts = N" only while the frame's attempt is below N.
 *
 * Built by build.sh.
 */
#include "../../abi/c/mirror.h"

typedef mirror_u8 u8;
typedef mirror_u32 u32;
typedef mirror_i32 i32;

__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit"))) void wasi_exit(i32 code);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))
i32 wasi_write(i32 fd, const void *iovs, u32 n, u32 *written);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("random_get"))) i32 wasi_random(void *p, u32 n);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("clock_time_get")))
i32 wasi_clock(i32 id, mirror_i64 precision, mirror_i64 *t);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("path_open")))
i32 wasi_open(i32 fd, i32 flags, const char *path, u32 n, i32 oflags, mirror_i64 rights, mirror_i64 inherit, i32 fdflags, i32 *out);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("environ_sizes_get"))) i32 wasi_environ(u32 *n, u32 *size);

static mirror_u64 arena[(1 << 20) / 8];
static u8 out[(1 << 20) + 4096] __attribute__((aligned(8)));
static u8 config[4096];
static u32 config_len;
static mirror_frame *kept;
static mirror_i64 calls;
static volatile u32 sink;

void *memcpy(void *d, const void *s, unsigned long n) { for (unsigned long i = 0; i < n; i++) ((u8 *)d)[i] = ((const u8 *)s)[i]; return d; }
void *memset(void *d, int c, unsigned long n) { for (unsigned long i = 0; i < n; i++) ((volatile u8 *)d)[i] = c; return d; }

static u32 length(const char *s) { u32 n = 0; while (s[n]) n++; return n; }
static int same(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *a == *b; }
static int is(const void *p, u32 n, const char *s) { for (u32 i = 0; i < n; i++) if (((const char *)p)[i] != s[i] || !s[i]) return 0; return !s[n]; }

/* what the config says of a key; "" is nothing */
static const char *of(const char *key) {
	for (u32 i = 0; i < config_len;) {
		const char *k = (const char *)config + i, *v = k + length(k) + 1;
		if (same(k, key)) return v;
		i += length(k) + length(v) + 2;
	}
	return "";
}
static i32 number(const char *s) {
	i32 n = 0, minus = *s == '-';
	for (s += minus; *s; s++) n = n * 10 + *s - '0';
	return minus ? -n : n;
}

static i32 record(const char *topic, u32 entry, const void *value, u32 n) {
	mirror_record *r = (mirror_record *)out;
	*r = (mirror_record){{MIRROR_EMIT_RECORD, 0, entry}, -1, (mirror_u16)length(topic), 0, -1, -1, (i32)n};
	u32 at = sizeof *r;
	memcpy(out + at, topic, r->topic_len);
	at += r->topic_len;
	memcpy(out + at, value, n);
	return mirror_emit(out, at + n);
}

static i32 echo(mirror_frame *f, u32 len) {
	i32 r = record("frames", MIRROR_NO_ENTRY, f, len);
	if (r < 0) return r;
	if (f->kind == 3 && !(f->flags & MIRROR_REPLAY))
		for (u32 i = 0; i < f->count; i++) {
			mirror_commit *c = mirror_entry(f, i);
			if (c->dst_last >= 0 && (r = mirror_emit_sync(i, c->src_last, c->dst_last)) < 0) return r;
		}
	return 0;
}

__attribute__((noinline)) static u32 deeper(u32 n) { return n == 0xffffffff ? 0 : deeper(n + 1) + sink; }

static i32 act(const char *what, mirror_frame *f, u32 len);

mirror_i32 mirror_on_partitions(mirror_frame *, u32);
mirror_i32 mirror_on_commit(mirror_frame *, u32);
mirror_i32 mirror_tick(mirror_frame *, u32);
void *mirror_alloc(u32 n);

/* calls its own exports while the host calls one of them, and answers in the innermost */
static i32 reenter(mirror_frame *f, u32 len) {
	static u32 depth;
	if (depth == 50) return echo(f, len);
	if (mirror_alloc(len) != f) return -1;
	depth++;
	i32 r = f->kind == 2 ? mirror_on_partitions(f, len) : f->kind == 3 ? mirror_on_commit(f, len) : mirror_tick(f, len);
	depth--;
	return r;
}

/* imports that are for hooks only, called from elsewhere */
static int all_refused(void) {
	u8 b[8];
	return mirror_emit_sync(0, 1, 1) == -5 && mirror_state_get(0, "k", 1, b, 8) == -5 && mirror_state_put(0, "k", 1, "v", 1) == -5 && mirror_state_next(0, "", 0, b, 8) == -5;
}

static i32 wild(void) {
	mirror_emit((void *)0xfffffff0, 100);
	mirror_emit(out, 0xffffffff);
	mirror_log(1, (void *)0x7fffffff, 0x7fffffff);
	mirror_log(77, out, 1);
	mirror_fail(-1, (void *)0xffffffff, 1);
	mirror_metric_define(0, (void *)0xffffffff, 10);
	mirror_metric_define(9, out, 1);
	mirror_metric(99999, 0, 1);
	mirror_metric(-1, 7, -1);
	return 0;
}

static i32 metrics(void) {
	i32 refused = 0;
	for (i32 i = 0; i < 200; i++) {
		char name[8] = {'m', '_', '0' + i / 100, '0' + i / 10 % 10, '0' + i % 10};
		i32 id = mirror_metric_define(MIRROR_COUNTER, name, 5);
		if (id < 0) refused++;
		else if (mirror_metric(id, MIRROR_ADD, 2) != 0) return -1;
	}
	return refused == 100 ? 0 : -1;
}

static i32 labels(void) {
	i32 c = mirror_metric_define(MIRROR_COUNTER, "seen\0topic\0a", 12), g = mirror_metric_define(MIRROR_GAUGE, "depth", 5);
	if (c < 0 || g < 0 || mirror_metric_define(MIRROR_COUNTER, "seen\0topic\0a", 12) != c) return -1;
	if (mirror_metric_define(MIRROR_GAUGE, "seen\0topic\0a", 12) != -4) return -1;
	if (mirror_metric_define(MIRROR_COUNTER, "seen\0lane\0a", 11) != -4) return -1;
	if (mirror_metric_define(MIRROR_COUNTER, "Seen", 4) != -4) return -1;
	if (mirror_metric(c, MIRROR_ADD, -1) != -4 || mirror_metric(c, MIRROR_SET, 1) != -4) return -1;
	if (mirror_metric(c, MIRROR_ADD, 3) || mirror_metric(g, MIRROR_SET, 40) || mirror_metric(g, MIRROR_ADD, 2)) return -1;
	return 0;
}

/* puts, and gets what was put */
static i32 state(mirror_frame *f) {
	u8 b[16] = {0};
	if (!f->count) return 0;
	if (mirror_state_put(0, "b", 1, "two", 3) || mirror_state_put(0, "a", 1, "", 0) || mirror_state_put(0, "ab", 2, "three", 5)) return -1;
	if (mirror_state_get(0, "b", 1, b, 16) != 3 || !is(b, 3, "two") || mirror_state_get(0, "a", 1, b, 0) != 0) return -2;
	memset(b, 'x', 16);
	if (mirror_state_get(0, "ab", 2, b, 4) != 5 || b[0] != 'x' || mirror_state_get(0, "c", 1, b, 16) != MIRROR_NOT_FOUND) return -3;
	if (mirror_state_next(0, "", 0, b, 16) != 1 || b[0] != 'a' || mirror_state_next(0, "a", 1, b, 1) != 2 || b[0] != 'a') return -4;
	if (mirror_state_next(0, "a", 1, b, 2) != 2 || b[1] != 'b' || mirror_state_next(0, "ab", 2, b, 16) != 1 || b[0] != 'b') return -5;
	if (mirror_state_put(0, "b", 1, 0, -1) || mirror_state_get(0, "b", 1, b, 16) != MIRROR_NOT_FOUND) return -6;
	if (mirror_state_put(0, "b", 1, (void *)0xffffffff, -1) || mirror_state_next(0, "ab", 2, b, 16) != MIRROR_NOT_FOUND) return -1;
	return 0;
}

/* pointers, lengths and entries that make no sense */
static i32 wild_state(mirror_frame *f) {
	void *far = (void *)0xfffffff0;
	i32 n = 0;
	memset(out, 'k', 2000);
	n += mirror_state_get(f->count, "k", 1, out, 8) == -4;
	n += mirror_state_get(0xffffffff, "k", 1, out, 8) == -4;
	n += mirror_state_get(0, far, 100, out, 8) == -4;
	n += mirror_state_get(0, "k", 0, out, 8) == -4;
	n += mirror_state_get(0, out, 1025, out, 8) == -4;
	n += mirror_state_get(0, "k", 0xffffffff, out, 8) == -4;
	n += mirror_state_put(0, "k", 1, far, 100) == -4;
	n += mirror_state_put(0, "k", 1, out, 0x7fffffff) == -4;
	n += mirror_state_put(0, "k", 1, out, -2) == -4;
	n += mirror_state_put(0, "k", 1, out, (512 << 10) + 1) == -4;
	n += mirror_state_put(0, out, 1025, out, 1) == -4;
	n += mirror_state_put(0, "", 0, out, 1) == -4;
	n += mirror_state_next(0, out, 1025, out, 8) == -4;
	n += mirror_state_next(0, far, 100, out, 8) == -4;
	n += mirror_state_next(f->count, "", 0, out, 8) == -4;
	if (mirror_state_put(0, out, 1024, out, 100)) return -1;
	n += mirror_state_get(0, out, 1024, far, 100) == -4;
	n += mirror_state_get(0, out, 1024, far, 0) == 100;
	n += mirror_state_next(0, "", 0, (void *)0xfffffff0, 2000) == -4;
	return n == 18 ? 0 : -n;
}

/* until there is no room, with keys in no order, and goes on putting what fits */
static i32 fill_state(void) {
	u32 key = 1;
	for (u32 i = 0; i < 1000000; i++) {
		key = key * 1664525 + 1013904223;
		i32 r = mirror_state_put(0, &key, 4, out, 32768);
		if (r == MIRROR_STATE_FULL) return mirror_state_put(0, &key, 4, 0, -1) ? -1 : 0;
		if (r) return r;
	}
	return -1;
}

/* state "last" is the last source offset that it was told, "sum" how many records: it is
 * never behind where a partition begins */
static i32 remember(mirror_frame *f) {
	for (u32 i = 0; i < f->count; i++) {
		mirror_i64 last = -1, sum = 0;
		mirror_state_get(i, "last", 4, &last, 8);
		mirror_state_get(i, "sum", 3, &sum, 8);
		if (f->kind == 2) {
			mirror_partition *p = mirror_entry(f, i);
			if (p->event == MIRROR_ASSIGNED && last >= 0 && last < p->position) {
				mirror_fail(-1, "the state is behind the position", 32);
				return -1;
			}
			if (p->event == MIRROR_RECREATED && last >= 0) {
				mirror_fail(-1, "the state is of another topic", 29);
				return -1;
			}
			continue;
		}
		mirror_commit *c = mirror_entry(f, i);
		if (c->src_last > last) {
			last = c->src_last, sum += c->records;
			if (mirror_state_put(i, "last", 4, &last, 8) || mirror_state_put(i, "sum", 3, &sum, 8)) return -1;
		}
	}
	return 0;
}

#ifdef GROUPS
static i32 translate(mirror_frame *f) {
	for (u32 i = 0; i < f->count; i++) {
		mirror_group *g = mirror_entry(f, i);
		if (is(mirror_at(f, g->group), g->group_len, "nobody")) continue;
		mirror_translation t = {{MIRROR_EMIT_TRANSLATION, 0, i}, g->offset + 100, 1, 0, 0};
		if (g->offset > g->position + 1) t.offset = g->dst_end, t.outcome = 2, t.reason = 2;
		if (mirror_emit(&t, sizeof t) < 0) return 0;
	}
	return 0;
}
#endif

static i32 act(const char *what, mirror_frame *f, u32 len) {
	if (same(what, "loop")) for (;;) sink++;
	if (same(what, "trap")) __builtin_trap();
	if (same(what, "exit")) wasi_exit(3);
	if (same(what, "recurse")) return (i32)deeper(0) & 0;
	if (same(what, "wild")) return wild();
	if (same(what, "metrics")) return metrics();
	if (same(what, "labels")) return labels();
	if (same(what, "nothing")) return 0;
	if (same(what, "return")) return number(of("status"));
	if (same(what, "fail")) {
		mirror_fail(-1234, "no\nluck", 7);
		return MIRROR_FATAL;
	}
	if (same(what, "failtrap")) {
		mirror_fail(-1, "assertion", 9);
		__builtin_trap();
	}
	if (same(what, "grow")) { /* all there is, and touch it */
		while (__builtin_wasm_memory_grow(0, 16) != (unsigned long)-1);
		u32 end = __builtin_wasm_memory_size(0) << 16;
		for (u32 at = sizeof arena; at < end; at += 65536) ((volatile u8 *)0)[at] |= 0;
		return 0;
	}
	if (same(what, "flood")) { /* and ignore what it says */
		while (mirror_emit_sync(0, 1, 1) >= 0);
		return 0;
	}
	if (same(what, "forget")) { mirror_emit_sync(0, 1, 1); return -1; }
	if (same(what, "entry")) { mirror_emit_sync(f->count, 1, 1); return 0; }
	if (same(what, "topic")) { record("elsewhere", 0, "x", 1); return 0; }
	if (same(what, "garbage")) { mirror_emit("garbage", 7); return 0; }
	if (same(what, "schema")) { struct { mirror_emit_head h; char s[4]; } s = {{MIRROR_EMIT_SCHEMA, 0, MIRROR_NO_ENTRY}, "v-1"}; return mirror_emit(&s, 11); }
	if (same(what, "logs")) { for (int i = 0; i < 1000; i++) mirror_log(MIRROR_INFO, "a line", 6); return 0; }
	if (same(what, "longlog")) { memset(out, 'x', 100000); return mirror_log(MIRROR_ERROR, out, 100000); }
	if (same(what, "stdout")) { /* one call, any number of buffers */
		struct { const void *p; u32 n; } *v = (void *)out;
		for (u32 i = 0; i < sizeof out / 8; i++) v[i].p = out, v[i].n = sizeof out;
		u32 n;
		return wasi_write(1, v, sizeof out / 8, &n) & 0;
	}
	if (same(what, "print")) {
		struct { const void *p; u32 n; } v[] = {{"hello ", 6}, {"there\nsec", 9}, {"ond\n", 4}};
		u32 n;
		return wasi_write(2, v, 3, &n);
	}
	if (same(what, "random")) { for (;;) wasi_random(out, sizeof out); }
	if (same(what, "fill")) { for (;;) __builtin_memset(out, (int)calls++, sizeof out); }
	if (same(what, "wasi")) {
		i32 fd;
		u32 n, size;
		if (wasi_open(3, 0, "/etc/passwd", 11, 0, -1, -1, 0, &fd) == 0) return -1;
		if (wasi_open(0, 0, "x", 1, 0, -1, -1, 0, &fd) == 0) return -1;
		return wasi_environ(&n, &size) || n || size ? -1 : 0;
	}
	if (same(what, "clock")) {
		mirror_i64 a, b, c;
		if (wasi_clock(0, 1, &a) || wasi_clock(0, 1, &b) || wasi_clock(1, 1, &c)) return -1;
		mirror_i64 now = *(mirror_i64 *)mirror_find(f, MIRROR_TAG_NOW)->bytes;
		return b > a && a / 1000000 - now < 5 && a / 1000000 >= now ? 0 : -1;
	}
	if (same(what, "nostate")) {
		u8 b[8];
		return mirror_state_get(0, "k", 1, b, 8) == -5 && mirror_state_put(0, "k", 1, "v", 1) == -5 && mirror_state_next(0, "", 0, b, 8) == -5 ? 0 : -1;
	}
	if (same(what, "state")) return state(f);
	if (same(what, "wildstate")) return wild_state(f);
	if (same(what, "fillstate")) return fill_state();
	if (same(what, "remember")) return remember(f);
	if (same(what, "count")) {
		i32 r = remember(f);
		return r ? r : echo(f, len);
	}
	if (same(what, "keep")) { /* a frame across calls: what is there now is another */
		if (!kept) kept = f;
		record("frames", MIRROR_NO_ENTRY, kept, len);
		return 0;
	}
	if (same(what, "reenter")) return reenter(f, len);
	if (same(what, "scribble")) { memset(f, 0xff, len); return 0; }
	if (same(what, "save")) { /* how many calls there were */
		struct { mirror_emit_head h; mirror_i64 n; } s = {{MIRROR_EMIT_SAVE, 0, MIRROR_NO_ENTRY}, calls};
		return mirror_emit(&s, sizeof s);
	}
	if (same(what, "load")) { /* and that they go on */
		mirror_extra *x = mirror_find(f, MIRROR_TAG_BLOB);
		if (!x || x->len != 8) return -1;
		calls = *(mirror_i64 *)x->bytes;
		return mirror_log(MIRROR_INFO, "restored", 8);
	}
	if (same(what, "answertwice")) {
		mirror_translation t = {{MIRROR_EMIT_TRANSLATION, 0, 0}, 1, 1, 0, 0};
		mirror_emit(&t, sizeof t);
		return mirror_emit(&t, sizeof t) & 0;
	}
	if (same(what, "putstate")) return mirror_state_put(0, "k", 1, "v", 1) == MIRROR_UNSUPPORTED ? 0 : -1;
	if (same(what, "twice")) { act("save", f, len); act("save", f, len); return 0; }
	return echo(f, len);
}

static int applies(mirror_frame *f) {
	const char *only = of("only"), *attempts = of("attempts");
	if (*attempts && *(i32 *)mirror_find(f, MIRROR_TAG_ATTEMPT)->bytes >= number(attempts)) return 0;
	if (!*only) return 1;
	for (u32 i = 0; i < f->count; i++) {
		void *e = mirror_entry(f, i);
		i32 p = f->kind == 3 ? ((mirror_commit *)e)->src_partition : f->kind == 4 ? ((mirror_group *)e)->partition : ((mirror_partition *)e)->partition;
		if (p == number(only)) return 1;
	}
	return 0;
}

static i32 run(const char *hook, mirror_frame *f, u32 len) {
	calls++;
	const char *what = of(hook);
	return applies(f) ? act(what, f, len) : echo(f, len);
}

/* Config comes with init, so that what it says of abi and alloc holds from then on. */
MIRROR_EXPORT(mirror_abi_1) i32 mirror_abi(void) { return 1; }

MIRROR_EXPORT(mirror_alloc) void *mirror_alloc(u32 n) {
	const char *what = of("alloc"), *room = of("room");
	if (*what) act(what, (mirror_frame *)arena, 0);
	if (same(what, "odd") || (same(what, "imports") && !all_refused())) return (u8 *)arena + 4;
	if (same(what, "far")) return (void *)0xfffffff8;
	if (*room && n > (u32)number(room)) return 0;
	return n <= sizeof arena ? arena : 0;
}

MIRROR_HOOK(init) {
	mirror_extra *x = mirror_find(frame, MIRROR_TAG_FLAT);
	if (!x || x->len > sizeof config) return MIRROR_BAD_INPUT;
	memcpy(config, x->bytes, x->len);
	config_len = x->len;
	if (*of("schema")) {
		mirror_emit_head h = {MIRROR_EMIT_SCHEMA, 0, MIRROR_NO_ENTRY};
		memcpy(out, &h, sizeof h);
		memcpy(out + sizeof h, of("schema"), length(of("schema")));
		if (mirror_emit(out, sizeof h + length(of("schema")))) return -1;
	}
	return *of("init") ? act(of("init"), frame, len) : 0;
}
MIRROR_HOOK(on_partitions) { return run("partitions", frame, len); }
MIRROR_HOOK(on_commit) { return run("commit", frame, len); }
#ifdef GROUPS
MIRROR_HOOK(on_groups) {
	calls++;
	return *of("groups") && applies(frame) ? act(of("groups"), frame, len) : translate(frame);
}
#endif
MIRROR_HOOK(tick) { return run("tick", frame, len); }
MIRROR_HOOK(save) { return *of("save") ? act(of("save"), frame, len) : 0; }
MIRROR_HOOK(restore) { return *of("restore") ? act(of("restore"), frame, len) : 0; }
MIRROR_HOOK(close) { return *of("close") ? act(of("close"), frame, len) : mirror_log(MIRROR_INFO, "closing", 7); }
