//! How it is written down where records went, dense: pieces, each a run of records
//! that were stored one after the other, and before it a gap. A piece is
//!
//!   varint  gap in source offsets << 3 | 4 if the third number is there | the gap's kind
//!   varint  how many records; 0: a mark, which only says how far the gap goes
//!   varint  gap in target offsets; without it: 0
//!
//! each relative to where the piece before it ends. So a transaction with its commit
//! marker takes two bytes. A varint has seven bits a byte, the lowest first, and the
//! eighth set in all but the last.

/// Offsets from here on are not written down.
pub const MOST: i64 = 1 << 60;

/// What is known of source offsets before a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Gap {
    /// They hold nothing that is on the target.
    Empty,
    /// Nobody has told.
    Unknown,
    /// It was known once, and given up for room.
    Thinned,
    /// The run is a point that an earlier mirror left. It may have copied the record
    /// once more later, so even the point itself is a bound.
    Replayed,
}

/// A source offset and the target offset that belongs to it; `dst` -1: none is known.
#[derive(Clone, Copy, PartialEq)]
pub struct Point {
    pub src: i64,
    pub dst: i64,
}

#[derive(Clone, Copy)]
pub struct Piece {
    pub gap: Gap,
    /// Its first record.
    pub at: Point,
    /// How many records; 0: a mark.
    pub len: i64,
    /// Whether it is known that what comes next is stored at `at.dst` or later; not so
    /// of a mark after which the target is not known.
    pub placed: bool,
}

impl Piece {
    /// Nothing yet, behind a point.
    pub fn none(at: Point) -> Piece {
        Piece {
            gap: Gap::Empty,
            at,
            len: 0,
            placed: false,
        }
    }

    pub fn is_none(&self) -> bool {
        self.gap == Gap::Empty && self.len == 0 && !self.placed
    }

    /// Where the piece after it would begin without a gap.
    pub fn end(&self) -> Point {
        Point {
            src: self.at.src + self.len,
            dst: self.at.dst + self.len,
        }
    }

    /// Writes it behind a piece that ends at `from`, in at most 27 bytes.
    pub fn write(&self, from: Point, out: &mut [u8]) -> usize {
        let placed = self.at.dst != from.dst || self.len == 0 && self.placed;
        let head = ((self.at.src - from.src) as u64) << 3 | (placed as u64) << 2 | self.gap as u64;
        let mut n = varint(head, out);
        n += varint(self.len as u64, &mut out[n..]);
        if placed {
            n += varint((self.at.dst - from.dst) as u64, &mut out[n..]);
        }
        n
    }
}

/// Reads pieces. It ends at what is none.
#[derive(Clone, Copy)]
pub struct Pieces<'a> {
    rest: &'a [u8],
    /// Where the last one ended.
    pub end: Point,
}

impl<'a> Pieces<'a> {
    pub fn new(bytes: &'a [u8], from: Point) -> Pieces<'a> {
        Pieces {
            rest: bytes,
            end: from,
        }
    }

    /// Passes over pieces that end at or before a source offset, for as long as they have
    /// the commonest form, and says whether there were any. The last run of them is put in
    /// `run`.
    pub fn pass_over(&mut self, offset: i64, run: &mut Option<Piece>) -> bool {
        let (mut src, mut dst) = (self.end.src, self.end.dst);
        let (mut tip, mut count) = (self.end, 0);
        let mut left = if dst < 0 { &[] } else { self.rest };
        while let [head, len, rest @ ..] = left {
            let end = src + (head >> 3) as i64 + *len as i64;
            if (head | len) & 0x80 != 0 || head & 7 != Gap::Empty as u8 || end > offset {
                break;
            }
            src = end;
            dst += *len as i64;
            if *len > 0 {
                tip = Point { src, dst };
                count = *len as i64;
            }
            left = rest;
        }
        if count > 0 {
            *run = Some(Piece {
                gap: Gap::Empty,
                at: Point {
                    src: tip.src - count,
                    dst: tip.dst - count,
                },
                len: count,
                placed: true,
            });
        }
        let any = src > self.end.src;
        if any {
            self.rest = left;
            self.end = Point { src, dst };
        }
        any
    }

    /// The last run that ends at or before a source offset.
    pub fn last_run(mut self, offset: i64) -> Option<Piece> {
        let mut run = None;
        loop {
            self.pass_over(offset, &mut run);
            match self.next() {
                Some(p) if p.end().src > offset => return run,
                Some(p) if p.len > 0 => run = Some(p),
                Some(_) => {}
                None => return run,
            }
        }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let head = take_varint(&mut self.rest)?;
        let len = take_varint(&mut self.rest)?;
        let placed = head & 4 != 0;
        let moved = if placed {
            take_varint(&mut self.rest)?
        } else {
            0
        };
        if len > MOST as u64 || moved > MOST as u64 {
            return None;
        }
        let p = Piece {
            gap: match head & 3 {
                0 => Gap::Empty,
                1 => Gap::Unknown,
                2 => Gap::Thinned,
                _ => Gap::Replayed,
            },
            at: Point {
                src: self.end.src + (head >> 3) as i64,
                dst: self.end.dst + moved as i64,
            },
            len: len as i64,
            placed: placed || len > 0,
        };
        self.end = p.end();
        Some(p)
    }
}

/// Writes a number, and says in how many bytes.
pub fn varint(mut n: u64, out: &mut [u8]) -> usize {
    let mut len = 0;
    while n >= 0x80 {
        out[len] = n as u8 | 0x80;
        n >>= 7;
        len += 1;
    }
    out[len] = n as u8;
    len + 1
}

/// Takes a number of at most 63 bits off the front.
#[inline(always)]
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(first.into());
    }
    take_long(bytes)
}

#[inline(never)]
fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for (i, &b) in bytes.iter().take(9).enumerate() {
        n |= ((b & 0x7f) as u64) << (7 * i);
        if b < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(n);
        }
    }
    None
}
