/* A translation of its own, in place of the built-in offset-sync: of each range it keeps
 * where its last record is, and an offset becomes the one after the nearest of these
 * before it. So it errs by a range, and never goes past the right one. Built by build.sh. */
#include "../../abi/c/mirror.h"

MIRROR_GUEST(1 << 20)

/* Keys are in the reverse order of offsets, so that the next one is the one before. */
static void key(mirror_u8 *k, mirror_i64 offset) {
	for (int i = 0; i < 8; i++) k[i] = ~(mirror_u8)(offset >> (56 - 8 * i));
}

MIRROR_HOOK(init) {
	static const mirror_u8 schema[] = {5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'n', 'e', 'a', 'r', 'e', 's', 't'};
	return mirror_emit(schema, sizeof schema);
}

MIRROR_HOOK(on_commit) {
	for (mirror_u32 i = 0; i < frame->count; i++) {
		mirror_commit *c = mirror_entry(frame, i);
		mirror_u8 k[8];
		if (c->dst_last < 0) continue;
		key(k, c->src_last);
		if (mirror_state_put(i, k, 8, &c->dst_last, 8) < 0) return MIRROR_FATAL;
	}
	return MIRROR_OK;
}

MIRROR_HOOK(on_groups) {
	for (mirror_u32 i = 0; i < frame->count; i++) {
		mirror_group *g = mirror_entry(frame, i);
		mirror_translation t = {{MIRROR_EMIT_TRANSLATION, 0, i}, -1, 0, 1, 0};
		mirror_u8 k[8];
		key(k, g->offset);
		if (mirror_state_next(i, k, 8, k, 8) == 8 && mirror_state_get(i, k, 8, &t.offset, 8) == 8)
			t.offset++, t.outcome = 2, t.reason = g->offset > g->position + 1 ? 2 : 3;
		if (mirror_emit(&t, sizeof t) < 0) return MIRROR_FATAL;
	}
	return MIRROR_OK;
}
