/**
 * What a plugin in AssemblyScript needs of the contract mirror_v1 (abi/SPEC.md):
 * the imports, the frames and the emits. One file. The plugin's own file exports
 * what the host calls:
 *
 *   import { Frame, Commit, OK } from "../../../abi/assemblyscript/mirror";
 *   export { mirror_abi_1, mirror_alloc } from "../../../abi/assemblyscript/mirror";
 *   export function mirror_on_commit(frame: Frame, len: u32): i32 { ... }
 *
 * Frames are read where the host has put them: nothing here allocates. A plugin that
 * allocates in its hooks needs the runtime "incremental"; the others run out of memory.
 */

/** What a hook returns; an import returns one of these, or 0 and more. */
export const OK: i32 = 0;
export const FATAL: i32 = -1;
export const RETRY: i32 = -2;
export const REJECT: i32 = -3;
export const BAD_INPUT: i32 = -4;

/** Flags of a commit frame. */
export const FLUSH: u16 = 1;
export const REPLAY: u16 = 2;

@external("mirror_v1", "emit")
declare function emit(emit: usize, len: u32): i32;
@external("mirror_v1", "metric_define")
declare function metric_define(type: i32, text: usize, len: u32): i32;

/** Changes a metric: op 0 adds, 1 sets. */
@external("mirror_v1", "metric")
export declare function metric(id: i32, op: i32, value: i64): i32;

/** The id of a counter, or a status below 0. Once for each instance is enough. */
export function counter(name: string): i32 {
  const text = String.UTF8.encode(name);
  return metric_define(0, changetype<usize>(text), text.byteLength);
}

/** A frame. Entries may be longer than the classes below; at() goes by what it says. */
@unmanaged
export class Frame {
  magic: u32;
  headerLen: u16;
  kind: u16;
  count: u32;
  stride: u16;
  flags: u16;
  entries: u32;
  blobs: u32;
  extras: u32;
  totalLen: u32;

  /** Entry i, from 0 on, as a Commit. */
  commit(i: u32): Commit {
    return changetype<Commit>(changetype<usize>(this) + this.entries + i * this.stride);
  }
}

/** A range of source offsets, and where on the target its records are. */
@unmanaged
export class Commit {
  srcFirst: i64;
  srcLast: i64;
  dstFirst: i64; // -1: the range left no record
  dstLast: i64;
  maxTimestamp: i64;
  srcTopic: u32;
  srcTopicLen: u16;
  dstTopicLen: u16;
  dstTopic: u32;
  srcPartition: i32;
  dstPartition: i32;
  records: u32;
  dropped: u32;
  leaderEpoch: i32;
}

const syncEmit = memory.data(24, 8);

/** Emits an offset sync of entry i's partition: the source record at upstream was stored at downstream. */
export function sync(i: u32, upstream: i64, downstream: i64): i32 {
  store<u32>(syncEmit, 1);
  store<u32>(syncEmit, i, 4);
  store<i64>(syncEmit, upstream, 8);
  store<i64>(syncEmit, downstream, 16);
  return emit(syncEmit, 24);
}

export function mirror_abi_1(): i32 {
  return 1;
}

const room: u32 = 1 << 20; // the longest frame
const arena = memory.data(1 << 20, 8);

/** The place of the frames: one, for a guest is called once at a time. */
export function mirror_alloc(size: u32): usize {
  return size <= room ? arena : 0;
}
