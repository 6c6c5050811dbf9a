//! Chunks: pieces as they are kept in a partition's state, some 4 KiB in a value. A
//! chunk says what is known of the source offsets from its start on, up to the start of
//! the chunk that comes next: what it says beyond that is void, as it is after a crash
//! between two writes. Its key is the start, big-endian, with all bits inverted, so that
//! the keys' order finds the chunk that an offset is in. Its value is
//!
//!   u8      how often its pieces were thinned; 128 is added once it is sealed
//!   varint  the target offset that the first piece is relative to, plus one
//!           pieces (runs.rs)

use crate::runs::{self, Pieces, Point};
use crate::state::State;

/// A chunk with pieces of so many bytes is sealed.
pub const FULL: usize = 4096;

/// A value that is longer is none of ours. Two of FULL bytes are never joined.
const LARGEST: usize = 3 * FULL;

/// Room for a value, and for what may be added to it.
pub const ROOM: usize = 4 * FULL;

/// The longest head, in bytes.
pub const HEAD: usize = 11;

const SEALED: u8 = 0x80;

#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    pub sealed: bool,
    pub level: u8,
    pub from: Point,
    pub body: &'a [u8],
}

impl<'a> Chunk<'a> {
    pub fn pieces(&self) -> Pieces<'a> {
        Pieces::new(self.body, self.from)
    }

    /// Where its last piece ends.
    pub fn end(&self) -> Point {
        let mut pieces = self.pieces();
        while pieces.next().is_some() {}
        pieces.end
    }
}

/// Writes what comes before the pieces, and says in how many bytes.
pub fn head(level: u8, sealed: bool, from: Point, out: &mut [u8]) -> usize {
    out[0] = level | if sealed { SEALED } else { 0 };
    1 + runs::varint((from.dst + 1) as u64, &mut out[1..])
}

/// The chunks of a partition. None that is there but not one of ours is seen.
#[derive(Clone, Copy)]
pub struct Shelf(State);

impl Shelf {
    pub fn of(entry: u32) -> Shelf {
        Shelf(State::of(entry))
    }

    /// Where the last chunk starts.
    pub fn last(self) -> Option<i64> {
        self.next(&[])
    }

    /// Where the last chunk starts that starts before an offset from 0 on.
    pub fn before(self, offset: i64) -> Option<i64> {
        self.next(&key(offset))
    }

    fn next(self, key: &[u8]) -> Option<i64> {
        let mut found = [0; 8];
        match self.0.next(key, &mut found) {
            Ok(8) => Some(!u64::from_be_bytes(found) as i64),
            _ => None,
        }
    }

    pub fn read(self, start: i64, buf: &mut [u8]) -> Option<Chunk> {
        let buf = buf.get_mut(..LARGEST)?;
        let len = self.0.get(&key(start), buf).ok()?;
        let (&flags, mut body) = buf.get(..len)?.split_first()?;
        let dst = runs::take_varint(&mut body)? as i64 - 1;
        Some(Chunk {
            sealed: flags & SEALED != 0,
            level: flags & !SEALED,
            from: Point { src: start, dst },
            body,
        })
    }

    /// Whether there was room for it.
    pub fn put(self, start: i64, value: &[u8]) -> bool {
        self.0.put(&key(start), value).is_ok()
    }

    /// It cannot fail: it needs no room.
    pub fn delete(self, start: i64) {
        let _ = self.0.delete(&key(start));
    }
}

fn key(start: i64) -> [u8; 8] {
    (!(start as u64)).to_be_bytes()
}
