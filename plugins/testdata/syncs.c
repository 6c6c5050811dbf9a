/* For the benchmark: an offset sync for each entry. Built by build.sh. */
#include "../../abi/c/mirror.h"

MIRROR_GUEST(1 << 20)

MIRROR_HOOK(on_commit) {
	for (mirror_u32 i = 0; i < frame->count; i++) {
		mirror_commit *c = mirror_entry(frame, i);
		if (c->dst_last >= 0 && mirror_emit_sync(i, c->src_last, c->dst_last) < 0) return MIRROR_FATAL;
	}
	return MIRROR_OK;
}
