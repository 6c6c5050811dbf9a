//! How the end of a history gets from memory into the state, and back.
//!
//! The last chunk is written anew with each flush, as long as it is small. Past REWRITE
//! bytes a new one is begun; once those that are closed have FULL bytes together they
//! are sealed into one. Wherever a crash cuts off a series of writes, what is there is
//! true, and reaches as far as before: what is new is put first, what it replaces after.

use crate::chunk::{self, Chunk, FULL, ROOM};
use crate::history::{Desk, Open};
use crate::runs::{Gap, Piece, Point};

/// How large a chunk may be and still be written with each flush, in bytes.
const REWRITE: usize = 256;

/// How many chunks are joined to another at most: twice as many as are FULL together.
const MERGED: usize = 2 * FULL / REWRITE;

impl Open<'_> {
    /// Has the closed pieces of the last chunk on the desk.
    pub fn body(&mut self) {
        if self.desk.have {
            return;
        }
        self.desk.have = true;
        let closed = self.h.closed;
        if closed == 0 {
            return;
        }
        let chunk = self.shelf.read(self.h.start.src, &mut self.desk.read);
        match chunk.and_then(|c| c.body.get(..closed)) {
            Some(body) => self.desk.body[..closed].copy_from_slice(body),
            None => self.rebegin(), // it is not there any more
        }
    }

    /// Puts what was learned since the last flush, and sees to it that the next one does
    /// not have to write much of it again.
    pub fn flush(&mut self) {
        let large = self.h.closed >= REWRITE;
        if large || self.h.dirty {
            self.body();
        }
        if large {
            self.split();
        } else if self.h.dirty {
            self.put_last();
        }
    }

    /// Puts what the desk alone has.
    pub fn close(&mut self) {
        if self.desk.changed {
            self.put_last();
        }
    }

    /// Puts the last chunk, whose closed pieces are on the desk, and says whether there is
    /// room for it; if not they are forgotten.
    pub fn put_last(&mut self) -> bool {
        self.desk.changed = false;
        self.h.dirty = false;
        let h = &*self.h;
        let out = &mut self.desk.out;
        let mut n = chunk::head(0, false, h.start, out);
        out[n..n + h.closed].copy_from_slice(&self.desk.body[..h.closed]);
        n += h.closed;
        if !h.last.is_none() {
            n += h.last.write(h.end, &mut out[n..]);
        }
        let tip = h.last.end();
        if h.covered > tip.src {
            let at = Point {
                src: h.covered,
                dst: tip.dst,
            };
            n += Piece::none(at).write(tip, &mut out[n..]);
        }
        let start = h.start.src;
        let put = self.put_out(start, 0, n);
        if !put {
            self.forget();
        }
        put
    }

    /// Begins a chunk with the last piece, and puts it; then the one before it, which is
    /// not written any more.
    pub fn split(&mut self) {
        let h = &mut *self.h;
        let (from, last) = (h.start, h.last);
        if last.at.src > h.end.src {
            let at = Point {
                src: last.at.src,
                dst: h.end.dst,
            };
            let mark = Piece {
                gap: if last.gap == Gap::Replayed {
                    Gap::Unknown
                } else {
                    last.gap
                },
                ..Piece::none(at)
            };
            h.closed += mark.write(h.end, &mut self.desk.body[h.closed..]);
        }
        let len = self.h.closed;
        self.rebegin();
        self.put_last();
        self.seal(from, len);
    }

    /// Has the last chunk begin with the last piece, where those before it end.
    pub fn rebegin(&mut self) {
        let h = &mut *self.h;
        h.start = Point {
            src: h.last.at.src,
            dst: h.end.dst,
        };
        h.end = h.start;
        h.closed = 0;
        if h.last.gap != Gap::Replayed {
            h.last.gap = Gap::Empty;
        }
        self.desk.have = true;
        self.desk.changed = false;
    }

    /// Gives up the closed pieces of the last chunk, for which there is no room. What the
    /// state has of them stays.
    fn forget(&mut self) {
        let body = &self.desk.body[..self.h.closed];
        let chunk = Chunk {
            sealed: false,
            level: 0,
            from: self.h.start,
            body,
        };
        let runs = chunk.pieces().filter(|p| p.len > 0).count();
        self.desk.given_up.add(runs as u32);
        self.rebegin();
    }

    /// Puts a chunk whose pieces are on the desk; together with those before it, sealed,
    /// if they are enough.
    fn seal(&mut self, from: Point, len: usize) {
        let Desk {
            body, out, read, ..
        } = &mut *self.desk;
        let mut at = ROOM - len;
        out[at..].copy_from_slice(&body[..len]);
        let mut first = from;
        let (mut replaced, mut count) = ([0; MERGED], 0);
        while ROOM - at < FULL && count < MERGED {
            let older = match self.shelf.before(first.src) {
                Some(start) => self.shelf.read(start, read),
                None => None,
            };
            match older {
                Some(c)
                    if !c.sealed && ROOM - at + c.body.len() <= 2 * FULL && c.end() == first =>
                {
                    at -= c.body.len();
                    out[at..at + c.body.len()].copy_from_slice(c.body);
                    replaced[count] = first.src;
                    count += 1;
                    first = c.from;
                }
                _ => break,
            }
        }
        let full = ROOM - at >= FULL;
        if !full && count < MERGED {
            at = ROOM - len;
            first = from;
            count = 0;
        }
        let mut head = [0; chunk::HEAD];
        let n = chunk::head(0, full, first, &mut head);
        at -= n;
        out[at..at + n].copy_from_slice(&head[..n]);
        if self.put_out(first.src, at, ROOM) {
            // The oldest first: what the others say still counts, and what they end with.
            for &start in replaced[..count].iter().rev() {
                self.shelf.delete(start);
            }
        }
    }

    /// Puts a part of desk.out, making room for it if need be.
    fn put_out(&mut self, start: i64, from: usize, to: usize) -> bool {
        for _ in 0..3 {
            if self.shelf.put(start, &self.desk.out[from..to]) {
                return true;
            }
            if !self.make_room() {
                return false;
            }
        }
        self.shelf.put(start, &self.desk.out[from..to])
    }

    /// Reads the chunk that starts there as the last one, up to a source offset, and says
    /// whether it could.
    pub fn load(&mut self, start: i64, upto: i64) -> bool {
        let c = match self.shelf.read(start, &mut self.desk.read) {
            Some(c) => c,
            None => return false,
        };
        let h = &mut *self.h;
        h.begin(c.from);
        h.dirty = false;
        let mut pieces = c.pieces();
        loop {
            let (closed, end) = (c.body.len() - pieces.left(), pieces.end);
            match pieces.next() {
                None => break,
                Some(p) if p.at.src >= upto => {
                    if p.gap == Gap::Empty {
                        h.covered = upto;
                    }
                    break;
                }
                Some(p) if p.is_none() => h.covered = p.at.src,
                Some(p) => {
                    h.closed = closed;
                    h.end = end;
                    h.last = Piece {
                        len: p.len.min(upto - p.at.src),
                        ..p
                    };
                    h.covered = h.last.end().src;
                }
            }
        }
        self.desk.have = false;
        true
    }
}
