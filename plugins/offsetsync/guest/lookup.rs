//! Where on the target a group goes on that has read the source up to an offset.

use crate::history::Open;
use crate::mirror::{self, Group};
use crate::runs::{Gap, Piece, Pieces, Point, MOST};

/// A translation: offset, outcome and reason.
#[derive(Clone, Copy)]
pub struct Answer {
    pub offset: i64,
    pub outcome: u16,
    pub reason: u16,
}

impl Answer {
    pub fn none(reason: u16) -> Answer {
        Answer {
            offset: -1,
            outcome: mirror::NO_OFFSET,
            reason,
        }
    }

    fn exact(offset: i64) -> Answer {
        match offset {
            0.. => Answer {
                offset,
                outcome: mirror::EXACT,
                reason: 0,
            },
            _ => Answer::none(mirror::NOT_KNOWN), // what the state has is not ours
        }
    }

    /// Behind the last record that is known. Before the first one, nothing can be said.
    fn bound(offset: i64, reason: u16) -> Answer {
        match offset {
            i64::MIN..=-1 => Answer::none(mirror::BEFORE_FIRST),
            0 => Answer {
                offset,
                outcome: mirror::BOUND,
                reason: mirror::BEFORE_FIRST,
            },
            _ => Answer {
                offset,
                outcome: mirror::BOUND,
                reason,
            },
        }
    }
}

/// A walk over pieces to the first record at or after an offset.
struct Walk {
    offset: i64,
    /// Where the last piece ended, and whether it was a point that was read back.
    end: Point,
    replayed: bool,
}

impl Walk {
    fn through(&mut self, mut pieces: Pieces) -> Option<Answer> {
        self.end = pieces.end;
        loop {
            if pieces.pass_over(self.offset) {
                self.end = pieces.end;
                self.replayed = false;
            }
            let answer = self.pass(&pieces.next()?);
            if answer.is_some() {
                return answer;
            }
        }
    }

    fn pass(&mut self, p: &Piece) -> Option<Answer> {
        let (end, replayed) = (self.end, self.replayed);
        self.end = p.end();
        self.replayed = p.gap == Gap::Replayed;
        if self.offset < p.at.src {
            return match p.gap {
                Gap::Empty if p.len > 0 => Some(Answer::exact(p.at.dst)),
                Gap::Empty => {
                    self.offset = p.at.src; // the record comes after it
                    self.replayed = replayed;
                    None
                }
                Gap::Thinned => Some(Answer::bound(end.dst, mirror::THINNED)),
                Gap::Unknown if !replayed => Some(Answer::bound(end.dst, mirror::IN_UNKNOWN)),
                _ => Some(Answer::bound(end.dst, mirror::BEFORE_FIRST)),
            };
        }
        let into = self.offset - p.at.src;
        if into >= p.len {
            return None;
        }
        Some(match p.gap {
            Gap::Replayed => Answer::bound(p.at.dst + into, mirror::BEFORE_FIRST),
            _ => Answer::exact(p.at.dst + into),
        })
    }
}

impl Open<'_> {
    pub fn translate(&mut self, g: &Group) -> Answer {
        if self.h.covered < 0 {
            Answer::none(mirror::NOT_KNOWN)
        } else if g.offset() >= self.h.covered {
            self.at_end(g.offset(), g.position())
        } else {
            self.find(g.offset(), g.position())
        }
    }

    /// Behind the last record that is known.
    fn at_end(&self, offset: i64, position: i64) -> Answer {
        let (h, last) = (&*self.h, &self.h.last);
        let next = last.end().dst;
        let copied = position.clamp(-1, MOST) + 1; // the first offset that is not
        let sure = h.covered >= copied && last.placed && last.gap != Gap::Replayed;
        let reason = match last.gap {
            _ if offset > h.covered.max(copied) => mirror::AHEAD,
            Gap::Replayed => mirror::BEFORE_FIRST,
            _ => mirror::IN_UNKNOWN,
        };
        match next {
            0.. if sure && offset <= h.covered => Answer::exact(next),
            _ => Answer::bound(next, reason),
        }
    }

    fn find(&mut self, offset: i64, position: i64) -> Answer {
        let mut walk = Walk {
            offset,
            end: Point { src: 0, dst: -1 },
            replayed: false,
        };
        let mut looked = -1;
        loop {
            let tail = self.h.start.src <= walk.offset;
            let start = if tail {
                self.h.start.src
            } else {
                match self.shelf.before(walk.offset.saturating_add(1).max(0)) {
                    Some(start) => start,
                    None => return Answer::bound(walk.end.dst, mirror::THINNED),
                }
            };
            if start == looked {
                // Nothing is there of what came next.
                return Answer::bound(walk.end.dst, mirror::THINNED);
            }
            looked = start;
            if !tail || self.h.closed > 0 && walk.offset < self.h.last.at.src {
                if let Some(c) = self.shelf.read(start, &mut self.desk.read) {
                    let closed = if tail { self.h.closed } else { c.body.len() };
                    let body = c.body.get(..closed).unwrap_or(&[]);
                    if let Some(answer) = walk.through(Pieces::new(body, c.from)) {
                        return answer;
                    }
                }
            }
            if tail {
                walk.end = self.h.end;
                let last = self.h.last;
                return match walk.pass(&last) {
                    Some(answer) => answer,
                    None => self.at_end(walk.offset, position),
                };
            }
        }
    }
}
