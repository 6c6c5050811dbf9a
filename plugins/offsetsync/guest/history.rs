//! What is known of a partition: which source records are where on the target. It is
//! kept in the partition's state (keep.rs). Only the end of it is in memory: the run
//! that is still growing.

use crate::chunk::{Shelf, FULL, ROOM};
use crate::mirror::{Commit, Partition};
use crate::runs::{Gap, Piece, Point, MOST};
use crate::state::Counter;

/// The end of what is known.
pub struct History {
    /// Whether it has been read from the state.
    pub loaded: bool,
    /// Whether the state lacks something.
    pub dirty: bool,
    /// Where the last chunk begins.
    pub start: Point,
    /// How many bytes of pieces it has before the last one, and where these end.
    pub closed: usize,
    pub end: Point,
    /// The last piece, which may grow.
    pub last: Piece,
    /// The first source offset that nothing is known of; -1: nothing is known at all.
    pub covered: i64,
}

const NOWHERE: Point = Point { src: 0, dst: -1 };

impl History {
    pub const NEW: History = History {
        loaded: false,
        dirty: false,
        start: NOWHERE,
        closed: 0,
        end: NOWHERE,
        last: Piece {
            gap: Gap::Empty,
            at: NOWHERE,
            len: 0,
            placed: false,
        },
        covered: -1,
    };

    /// Nothing is known but what comes from a point on.
    pub fn begin(&mut self, at: Point) {
        *self = History {
            loaded: true,
            dirty: true,
            start: at,
            closed: 0,
            end: at,
            last: Piece::none(at),
            covered: at.src,
        };
    }
}

/// Where the work is done: for one partition at a time, empty between two calls.
pub struct Desk {
    /// The closed pieces of the last chunk, once have says so.
    pub body: [u8; ROOM],
    pub have: bool,
    /// Whether there are more of them than in the state.
    pub changed: bool,
    /// A value that is being made, and two that have been read.
    pub out: [u8; ROOM],
    pub read: [u8; ROOM],
    pub spare: [u8; ROOM],
    /// How many chunks may still be looked at in this call to make room.
    pub budget: u32,
    /// Counts the runs that were given up for room.
    pub given_up: Counter,
}

impl Desk {
    pub const EMPTY: Desk = Desk {
        body: [0; ROOM],
        have: false,
        changed: false,
        out: [0; ROOM],
        read: [0; ROOM],
        spare: [0; ROOM],
        budget: 0,
        given_up: Counter::NONE,
    };
}

/// The history of one partition, on the desk. Close it before another is opened.
pub struct Open<'a> {
    pub h: &'a mut History,
    pub shelf: Shelf,
    pub desk: &'a mut Desk,
}

impl<'a> Open<'a> {
    pub fn new(h: &'a mut History, entry: u32, desk: &'a mut Desk) -> Open<'a> {
        desk.have = false;
        desk.changed = false;
        let shelf = Shelf::of(entry);
        let mut open = Open { h, shelf, desk };
        if !open.h.loaded {
            open.h.loaded = true;
            if let Some(start) = open.shelf.last() {
                open.load(start, i64::MAX);
            }
        }
        open
    }

    /// Takes in what has become of a range.
    pub fn commit(&mut self, c: &Commit, replay: bool) {
        let (first, last) = (c.src_first(), c.src_last());
        let at = Point {
            src: first,
            dst: c.dst_first(),
        };
        if first < 0 || last < first || last >= MOST || c.stored() && !placeable(c) {
            return;
        }
        if replay {
            if first >= self.h.covered && c.stored() && c.one_to_one() {
                self.rewind(at.dst);
                self.push(Gap::Replayed, at, 1, true, first + 1);
            }
            return;
        }
        self.cut(first);
        if c.stored() {
            self.rewind(at.dst);
        }
        let gap = match self.h.covered {
            -1 => Gap::Empty,
            known if known == first => Gap::Empty,
            _ => Gap::Unknown,
        };
        if c.stored() && c.one_to_one() {
            self.push(gap, at, last + 1 - first, true, last + 1);
        } else if c.stored() {
            // Which of its offsets is where is not known, but where the next one is.
            self.known_from(at);
            let next = Point {
                src: last + 1,
                dst: c.dst_last() + 1,
            };
            self.push(Gap::Unknown, next, 0, true, last + 1);
        } else if gap == Gap::Empty {
            self.known_from(Point {
                src: first,
                dst: -1,
            });
            self.h.covered = last + 1;
            self.h.dirty = true;
        } else {
            let dst = self.h.last.end().dst;
            self.push(gap, Point { src: first, dst }, 0, false, last + 1);
        }
    }

    /// What is true of the partition when it is assigned, made anew or cut off.
    pub fn assigned(&mut self, p: &Partition) {
        let next = p.position().saturating_add(1).max(0);
        self.cut(next);
        if p.dst_end() >= 0 {
            self.rewind(p.dst_end());
        }
        // The target is empty: whatever comes is stored at 0 or later.
        if self.h.covered < 0 && p.dst_end() == 0 && next < MOST {
            let gone = next <= p.log_start().max(0); // what is before it will not be copied
            let gap = if gone { Gap::Empty } else { Gap::Unknown };
            let at = Point { src: next, dst: 0 };
            self.known_from(Point { src: 0, dst: 0 });
            self.push(gap, at, 0, true, next);
        }
    }

    /// Deletes the chunks that end at or before the log's start.
    pub fn trim(&mut self, log_start: i64) {
        if log_start <= 0 || log_start >= MOST {
            return;
        }
        let mut chunk = self.shelf.before(log_start + 1); // the one that it is in
        if self.h.start.src <= log_start {
            chunk = chunk.max(Some(self.h.start.src));
        }
        while let Some(older) = chunk.and_then(|start| self.shelf.before(start)) {
            self.shelf.delete(older);
            chunk = Some(older);
        }
    }

    fn known_from(&mut self, at: Point) {
        if self.h.covered < 0 {
            self.h.begin(at);
        }
    }

    /// Adds a piece behind the last one; then everything before `covered` is known.
    fn push(&mut self, gap: Gap, at: Point, len: i64, placed: bool, covered: i64) {
        if at.dst < self.h.last.end().dst {
            self.cut(0); // rewind has seen to it that this is never so
        }
        self.known_from(at);
        let piece = Piece {
            gap,
            at,
            len,
            placed,
        };
        let tip = self.h.last.end();
        let goes_on = gap == Gap::Empty && at.src == tip.src && len > 0;
        let empty = self.h.covered > tip.src && gap != Gap::Empty; // before the gap
        let known = core::mem::replace(&mut self.h.covered, covered);
        self.h.dirty = true;
        let last = &mut self.h.last;
        if goes_on && last.len == 0 {
            *last = Piece {
                gap: last.gap,
                ..piece
            };
        } else if goes_on && at.dst == tip.dst && last.gap != Gap::Replayed {
            last.len += len;
        } else if last.is_none() && !empty {
            *last = piece;
        } else {
            self.add(piece, if empty { known } else { tip.src });
        }
    }

    /// Closes the last piece, behind which everything before `empty` holds nothing.
    fn add(&mut self, piece: Piece, empty: i64) {
        self.body();
        let (h, body) = (&mut *self.h, &mut self.desk.body);
        let tip = h.last.end();
        if !h.last.is_none() {
            h.closed += h.last.write(h.end, &mut body[h.closed..]);
        }
        h.end = tip;
        if empty > tip.src {
            let mark = Piece::none(Point {
                src: empty,
                dst: tip.dst,
            });
            h.closed += mark.write(tip, &mut body[h.closed..]);
            h.end = mark.at;
        }
        h.last = piece;
        self.desk.changed = true;
        if h.closed >= FULL {
            self.split();
        }
    }
}

/// Whether the target offsets of a stored range can be written down.
fn placeable(c: &Commit) -> bool {
    c.dst_first() >= 0 && c.dst_first() <= c.dst_last() && c.dst_last() < MOST
}
