//! What a plugin in Rust needs of the contract `mirror_v1` (abi/SPEC.md): the
//! frames, the emits and the errors. One file, `no_std`, without an allocator; a
//! plugin includes it:
//!
//! ```ignore
//! #[path = "../../abi/rust/mirror.rs"]
//! mod mirror;
//! ```
//!
//! It exports `mirror_abi_1` and `mirror_alloc` and traps when the plugin panics.
//! Each hook of the plugin is an export that begins with `Frame::at`.
#![allow(dead_code)] // a plugin uses what it needs

use core::{ptr, slice};

/// What a hook returns.
pub const OK: i32 = 0;
pub const FATAL: i32 = -1;
pub const RETRY: i32 = -2;
pub const REJECT: i32 = -3;
pub const BAD_INPUT: i32 = -4;
pub const UNSUPPORTED: i32 = -5;
pub const NO_MEMORY: i32 = -6;
pub const STATE_FULL: i32 = -7;
pub const NOT_FOUND: i32 = -8;

/// Flags of a commit frame.
pub const FLUSH: u16 = 1;
pub const REPLAY: u16 = 2;

/// The longest frame that a host sends.
const LONGEST: usize = 1 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"MIR1");
const MINOR: i32 = 1;

mod host {
    #[link(wasm_import_module = "mirror_v1")]
    extern "C" {
        pub fn emit(ptr: *const u8, len: u32) -> i32;
        pub fn log(level: i32, ptr: *const u8, len: u32) -> i32;
        pub fn fail(code: i32, ptr: *const u8, len: u32) -> i32;
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

#[no_mangle]
extern "C" fn mirror_abi_1() -> i32 {
    MINOR
}

/// The place of the frames: one, for a guest is called once at a time.
#[no_mangle]
extern "C" fn mirror_alloc(size: u32) -> *mut u8 {
    static mut ARENA: [u64; LONGEST / 8] = [0; LONGEST / 8];
    if size as usize > LONGEST {
        return ptr::null_mut();
    }
    unsafe { ptr::addr_of_mut!(ARENA).cast() }
}

/// A kind of frame, and the length of its entries in minor 1.
#[derive(Clone, Copy)]
pub struct Kind {
    id: u16,
    entry: usize,
}
pub const INIT: Kind = Kind { id: 1, entry: 0 };
pub const PARTITIONS: Kind = Kind { id: 2, entry: 80 };
pub const COMMITS: Kind = Kind { id: 3, entry: 72 };
pub const GROUPS: Kind = Kind { id: 4, entry: 72 };
pub const SAVE: Kind = Kind { id: 6, entry: 0 };
pub const RESTORE: Kind = Kind { id: 7, entry: 0 };

/// Tags of extras.
pub const CONFIG_JSON: u16 = 6;
pub const CONFIG_FLAT: u16 = 7;
pub const BLOB: u16 = 8;

/// One call's frame, in the arena: it is gone when the hook returns.
#[derive(Clone, Copy)]
pub struct Frame {
    bytes: &'static [u8],
}

impl Frame {
    /// The frame that a hook was called with. `Err` is the status to return: what is
    /// there is not a frame of this kind, and `fail` has been told so.
    ///
    /// # Safety
    /// `ptr` and `len` are what the host gave, and no other frame is looked at any more.
    pub unsafe fn at(ptr: *const u8, len: u32, kind: Kind) -> Result<Frame, i32> {
        let f = Frame {
            bytes: slice::from_raw_parts(ptr, len as usize),
        };
        let end = f
            .entries()
            .saturating_add(f.count().saturating_mul(f.stride()));
        let good = f.u32(0) == MAGIC
            && f.u16(6) == kind.id
            && end <= f.bytes.len()
            && f.count() <= MAX_ENTRIES as usize
            && (f.count() == 0 || f.stride() >= kind.entry);
        if good {
            Ok(f)
        } else {
            Err(fail(
                BAD_INPUT,
                &[b"the frame is not one of mirror_v1, or of another hook"],
            ))
        }
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.u32(8) as usize
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u16) -> bool {
        self.u16(14) & flag != 0
    }

    /// The entries of a commit frame.
    pub fn commits(self) -> impl Iterator<Item = Commit> {
        self.commits_from(0)
    }

    /// Those from an index on.
    pub fn commits_from(self, first: usize) -> impl Iterator<Item = Commit> {
        (first..self.count()).map(move |i| Commit(self.entry(i)))
    }

    /// The entries of a frame about partitions.
    pub fn partitions(self) -> impl Iterator<Item = Partition> {
        (0..self.count()).map(move |i| Partition(self.entry(i)))
    }

    /// The entries of a frame about groups.
    pub fn groups(self) -> impl Iterator<Item = Group> {
        (0..self.count()).map(move |i| Group(self.entry(i)))
    }

    /// The value of an extra, if the frame has it.
    pub fn extra(&self, tag: u16) -> Option<&'static [u8]> {
        let mut at = self.u32(24) as usize;
        if at == 0 {
            return None;
        }
        loop {
            let len = self.u32(at + 4) as usize;
            match self.u16(at) {
                0 => return None, // the end, and what lies outside of the frame
                t if t == tag => return self.bytes.get(at + 8..)?.get(..len),
                _ => {
                    at = at
                        .saturating_add(8)
                        .saturating_add(len.saturating_add(7) / 8 * 8)
                }
            }
        }
    }

    fn stride(&self) -> usize {
        self.u16(12) as usize
    }

    fn entries(&self) -> usize {
        self.u32(16) as usize
    }

    fn entry<const N: usize>(self, index: usize) -> Entry<N> {
        let at = self.entries() + index * self.stride();
        let bytes = self.bytes.get(at..at + N).and_then(|b| b.try_into().ok());
        Entry {
            frame: self,
            index: index as u32,
            bytes: bytes.unwrap_or(&[0; N]), // never so: Frame::at has looked
        }
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(field(self.bytes, at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(field(self.bytes, at))
    }
}

/// N bytes of a frame; zeros where it ends before them.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|b| b.get(..N))
        .and_then(|b| b.try_into().ok())
        .unwrap_or([0; N])
}

/// The first N bytes of an entry, which are those of minor 1.
struct Entry<const N: usize> {
    frame: Frame,
    index: u32,
    bytes: &'static [u8; N],
}

impl<const N: usize> Entry<N> {
    fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(field(self.bytes, at))
    }

    fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(field(self.bytes, at))
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(field(self.bytes, at))
    }

    fn text(&self, at: usize, len: usize) -> &'static [u8] {
        let len = self.u16(len) as usize;
        self.frame
            .bytes
            .get(self.i32(at) as u32 as usize..)
            .and_then(|b| b.get(..len))
            .unwrap_or(&[])
    }
}

/// A range of source offsets, and where on the target its records are.
pub struct Commit(Entry<72>);

impl Commit {
    pub fn src_first(&self) -> i64 {
        self.0.i64(0)
    }
    /// Before `src_first` when there is nothing new.
    pub fn src_last(&self) -> i64 {
        self.0.i64(8)
    }
    pub fn dst_first(&self) -> i64 {
        self.0.i64(16)
    }
    /// -1: the range left no record on the target.
    pub fn dst_last(&self) -> i64 {
        self.0.i64(24)
    }
    /// Whether the range left records on the target.
    pub fn stored(&self) -> bool {
        self.dst_last() >= 0 && self.src_last() >= self.src_first()
    }
    pub fn topic(&self) -> &'static [u8] {
        self.0.text(40, 44)
    }
    pub fn partition(&self) -> i32 {
        self.0.i32(52)
    }
    /// Whether both are about the same source partition.
    pub fn same_partition(&self, other: &Commit) -> bool {
        // The host writes equal texts of a frame once, though it need not.
        let same_text = self.0.i32(40) == other.0.i32(40) && self.0.u16(44) == other.0.u16(44);
        self.partition() == other.partition() && (same_text || self.topic() == other.topic())
    }
    /// Records of the range that were not copied.
    pub fn dropped(&self) -> u32 {
        self.0.i32(64) as u32
    }
    /// Whether the n-th offset of the source range is the n-th of the target's.
    pub fn one_to_one(&self) -> bool {
        self.dropped() == 0
            && self.src_last().wrapping_sub(self.src_first())
                == self.dst_last().wrapping_sub(self.dst_first())
    }
    /// Emits an offset sync of this entry's partition.
    pub fn sync(&self, upstream: i64, downstream: i64) -> Result<(), i32> {
        let mut b = [0; 24];
        b[0..2].copy_from_slice(&EMIT_OFFSET_SYNC.to_le_bytes());
        b[4..8].copy_from_slice(&self.0.index.to_le_bytes());
        b[8..16].copy_from_slice(&upstream.to_le_bytes());
        b[16..24].copy_from_slice(&downstream.to_le_bytes());
        emit(&b)
    }
    /// Its place in the frame.
    pub fn index(&self) -> u32 {
        self.0.index
    }
}

/// What happened to a partition.
pub struct Partition(Entry<80>);

impl Partition {
    /// The first offset of the source's log; -1: unknown.
    pub fn log_start(&self) -> i64 {
        self.0.i64(0)
    }
    /// The last source offset that is safe on the target; -1: none.
    pub fn position(&self) -> i64 {
        self.0.i64(8)
    }
    /// The next offset of the target partition; -1: unknown.
    pub fn dst_end(&self) -> i64 {
        self.0.i64(16)
    }
    pub fn topic(&self) -> &'static [u8] {
        self.0.text(24, 28)
    }
    pub fn partition(&self) -> i32 {
        self.0.i32(36)
    }
    pub fn event(&self) -> u32 {
        self.0.i32(40) as u32
    }
    /// Its place in the frame.
    pub fn index(&self) -> u32 {
        self.0.index
    }
}

/// What a consumer group has committed of a partition.
pub struct Group(Entry<72>);

impl Group {
    /// The next source offset to read.
    pub fn offset(&self) -> i64 {
        self.0.i64(0)
    }
    /// The last source offset that is safe on the target; -1: none.
    pub fn position(&self) -> i64 {
        self.0.i64(16)
    }
    /// The next offset of the target partition; -1: unknown.
    pub fn dst_end(&self) -> i64 {
        self.0.i64(24)
    }
    pub fn topic(&self) -> &'static [u8] {
        self.0.text(40, 38)
    }
    pub fn partition(&self) -> i32 {
        self.0.i32(44)
    }
    /// Emits where the group goes on: a target offset, or -1 with `NO_OFFSET`; and the run
    /// of records that this goes by, which -1 cannot have.
    pub fn translation(
        &self,
        offset: i64,
        outcome: u16,
        reason: u16,
        run: Option<Run>,
    ) -> Result<(), i32> {
        let mut b = [0; 48];
        b[0..2].copy_from_slice(&EMIT_TRANSLATION.to_le_bytes());
        b[4..8].copy_from_slice(&self.0.index.to_le_bytes());
        b[8..16].copy_from_slice(&offset.to_le_bytes());
        b[16..18].copy_from_slice(&outcome.to_le_bytes());
        b[18..20].copy_from_slice(&reason.to_le_bytes());
        match run {
            None => emit(&b[..24]),
            Some(run) => {
                b[24..32].copy_from_slice(&run.first.to_le_bytes());
                b[32..40].copy_from_slice(&run.last.to_le_bytes());
                b[40..48].copy_from_slice(&run.target.to_le_bytes());
                emit(&b)
            }
        }
    }
    /// Its place in the frame.
    pub fn index(&self) -> u32 {
        self.0.index
    }
}

/// Records that follow each other without a gap on both sides: source offsets of the
/// first and the last, and the target offset of the first.
#[derive(Clone, Copy)]
pub struct Run {
    pub first: i64,
    pub last: i64,
    pub target: i64,
}

/// Outcomes of translations.
pub const NO_OFFSET: u16 = 0;
pub const EXACT: u16 = 1;
pub const BOUND: u16 = 2;

/// Why a translation is not exact.
pub const BEFORE_FIRST: u16 = 1;
pub const AHEAD: u16 = 2;
pub const IN_UNKNOWN: u16 = 3;
pub const THINNED: u16 = 4;
pub const NOT_KNOWN: u16 = 5;

/// Events of partitions.
pub const ASSIGNED: u32 = 1;
pub const REVOKED: u32 = 2;
pub const LOG_START: u32 = 3;
pub const RECREATED: u32 = 4;
pub const TRUNCATED: u32 = 5;

const EMIT_OFFSET_SYNC: u16 = 1;
const EMIT_TRANSLATION: u16 = 3;
/// How many offset syncs one call may emit: 4 MiB, each with its 24 bytes and 64 more.
pub const MAX_SYNCS: u32 = (4 << 20) / (24 + 64);
/// The most entries that a frame has.
pub const MAX_ENTRIES: u32 = 4096;
/// What the emit of `mirror_save` begins with; what is to be saved follows.
pub const SAVE_HEAD: [u8; 8] = [4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
/// The most that `mirror_save` may save, in bytes.
pub const MAX_SAVE: usize = 960 << 10;

/// Stages an emit. `Err` is the status to return.
pub fn emit(bytes: &[u8]) -> Result<(), i32> {
    match unsafe { host::emit(bytes.as_ptr(), bytes.len() as u32) } {
        status if status < 0 => Err(status),
        _ => Ok(()),
    }
}

/// Tells the host why the hook fails, in UTF-8; gives back the code, to return.
pub fn fail(code: i32, text: &[&[u8]]) -> i32 {
    let mut b = [0; 512];
    let mut len = 0;
    for part in text {
        let n = part.len().min(b.len() - len);
        b[len..len + n].copy_from_slice(&part[..n]);
        len += n;
    }
    unsafe { host::fail(code, b.as_ptr(), len as u32) };
    code
}
