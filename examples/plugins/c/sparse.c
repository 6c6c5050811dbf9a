/* An offset policy: a sync for every 1,000th record, and no other. */
#include "../../../abi/c/mirror.h"

MIRROR_GUEST(1 << 20)

static mirror_i64 every = 1000;

static mirror_i32 bad_config(void) {
	static const char why[] = "config: want every = a whole number from 100 to 999999999, and nothing else";
	mirror_fail(MIRROR_BAD_INPUT, why, sizeof why - 1);
	return MIRROR_BAD_INPUT;
}

/* The config is { every = 1000 }, flattened: every NUL 1000 NUL. (A call may emit
 * some 47,000 syncs: below 100 the ranges of a mirror that catches up may have more.) */
MIRROR_HOOK(init) {
	static const char key[] = "every";
	mirror_extra *flat = mirror_find(frame, MIRROR_TAG_FLAT);
	mirror_u32 i = 0;
	(void)len;
	if (!flat || !flat->len)
		return MIRROR_OK;
	for (; i < sizeof key; i++)
		if (i >= flat->len || flat->bytes[i] != key[i])
			return bad_config();
	if (flat->len - i < 2 || flat->len - i > 10)
		return bad_config();
	for (every = 0; i < flat->len - 1; i++) {
		if (flat->bytes[i] < '0' || flat->bytes[i] > '9')
			return bad_config();
		every = every * 10 + flat->bytes[i] - '0';
	}
	return every >= 100 ? MIRROR_OK : bad_config();
}

MIRROR_HOOK(on_commit) {
	(void)len;
	if (frame->flags & MIRROR_REPLAY)
		return MIRROR_OK;
	for (mirror_u32 i = 0; i < frame->count; i++) {
		mirror_commit *c = mirror_entry(frame, i);
		/* Only then is the n-th source offset the n-th on the target. */
		if (c->dst_first < 0 || c->dropped || c->src_last - c->src_first != c->dst_last - c->dst_first)
			continue;
		for (mirror_i64 o = (c->src_first + every - 1) / every * every; o <= c->src_last; o += every) {
			mirror_i32 status = mirror_emit_sync(i, o, c->dst_first + (o - c->src_first));
			if (status < 0)
				return status;
		}
	}
	return MIRROR_OK;
}
