//! How a history loses its end, when records are told again that have been stored once
//! more, and when source or target have lost them.

use crate::history::{History, Open};

impl Open<'_> {
    /// Forgets what is known of the source offsets from one on, also in the state.
    pub fn cut(&mut self, offset: i64) {
        if offset >= self.h.covered {
            return;
        }
        if offset > self.h.last.at.src {
            self.body();
            let last = &mut self.h.last;
            last.len = last.len.min(offset - last.at.src);
            self.h.covered = offset;
            return self.put_cut();
        }
        self.close();
        let (mut upto, mut empty) = (offset, offset);
        while let Some(start) = self.shelf.last() {
            let loaded = start < upto && self.load(start, upto);
            if loaded && !(self.h.last.is_none() && self.shelf.before(start).is_some()) {
                if self.h.covered == upto {
                    self.h.covered = empty;
                }
                self.body();
                return self.put_cut();
            }
            if start < upto {
                // Nothing is left of it but the gap that it begins with.
                empty = if loaded { self.h.covered } else { start };
                upto = start;
            }
            self.shelf.delete(start);
        }
        *self.h = History {
            loaded: true,
            ..History::NEW
        };
    }

    /// Puts the last chunk after a cut: nothing of what was cut may stay.
    fn put_cut(&mut self) {
        let start = self.h.start.src;
        if !self.put_last() {
            self.shelf.delete(start);
        }
    }

    /// Forgets what is known to be on the target at an offset or after it: the target has
    /// lost it, for something else has been stored there.
    pub fn rewind(&mut self, offset: i64) {
        let h = &mut *self.h;
        if h.covered < 0 || h.last.end().dst <= offset {
            return;
        }
        if h.last.len == 0 {
            h.last.placed = false;
            h.last.at.dst = h.end.dst;
            h.dirty = true;
        }
        let last = h.last;
        if last.len > 0 && last.at.dst < offset {
            return self.cut(last.at.src + (offset - last.at.dst));
        }
        if h.end.dst <= offset {
            if last.len > 0 {
                self.cut(last.at.src);
            }
            return;
        }
        self.close();
        let mut chunk = self.shelf.last();
        while let Some(start) = chunk {
            chunk = self.shelf.before(start);
            let c = match self.shelf.read(start, &mut self.desk.read) {
                Some(c) => c,
                None => continue,
            };
            if c.from.dst > offset && chunk.is_some() {
                continue;
            }
            let first = c.pieces().find(|p| p.end().dst > offset);
            let at = match first {
                _ if c.from.dst > offset => start,
                Some(p) => p.at.src + (offset - p.at.dst).clamp(0, p.len),
                None => c.end().src,
            };
            return self.cut(at);
        }
        self.cut(0);
    }
}
