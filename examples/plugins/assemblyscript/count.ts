/** An observer: counts what has been mirrored, for /metrics. It emits nothing. */
import { counter, Frame, metric, OK, REPLAY } from "../../../abi/assemblyscript/mirror";
export { mirror_abi_1, mirror_alloc } from "../../../abi/assemblyscript/mirror";

let records: i32, ranges: i32;

export function mirror_init(frame: Frame, len: u32): i32 {
  records = counter("records");
  ranges = counter("ranges");
  return min(OK, min(records, ranges));
}

export function mirror_on_commit(frame: Frame, len: u32): i32 {
  if (frame.flags & REPLAY) return OK;
  for (let i: u32 = 0; i < frame.count; i++) {
    const c = frame.commit(i);
    if (c.dstLast < 0) continue; // it left no record
    metric(records, 0, c.records);
    metric(ranges, 0, 1);
  }
  return OK;
}
