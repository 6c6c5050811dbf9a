//! Where on the target a group goes on that has read the source up to an offset.

use crate::history::Open;
use crate::mirror::{self, Group, Run};
use crate::runs::{Gap, Piece, Pieces, Point, MOST};

/// How many chunks are looked through for the run that a bound rests on: that of the
/// group's offset, and those before it while they have marks alone.
const LOOKS: usize = 4;

/// A translation: offset, outcome and reason, and the run that it goes by.
#[derive(Clone, Copy)]
pub struct Answer {
    pub offset: i64,
    pub outcome: u16,
    pub reason: u16,
    pub run: Option<Run>,
}

impl Answer {
    pub fn none(reason: u16) -> Answer {
        Answer {
            offset: -1,
            outcome: mirror::NO_OFFSET,
            reason,
            run: None,
        }
    }

    fn exact(offset: i64) -> Answer {
        match offset {
            0.. => Answer {
                offset,
                outcome: mirror::EXACT,
                reason: 0,
                run: None,
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
                run: None,
            },
            _ => Answer {
                offset,
                outcome: mirror::BOUND,
                reason,
                run: None,
            },
        }
    }

    /// The answer with the run that it goes by, if it does: it goes to a record of it, or
    /// behind its last one. An answer may rest on a mark instead, as behind a range of
    /// which something was left out; that has no run. What a piece says is what is told:
    /// where one run is written down in several, it is the one that was used.
    fn by(self, run: Option<Piece>) -> Answer {
        let ours = |n: i64| (0..MOST).contains(&n); // else what the state has is not
        let run = run.filter(|p| {
            let behind = self.offset - p.at.dst;
            p.len > 0 && ours(p.at.src) && ours(p.at.dst) && (0..=p.len).contains(&behind)
        });
        Answer {
            run: run.map(|p| Run {
                first: p.at.src,
                last: p.end().src - 1,
                target: p.at.dst,
            }),
            ..self
        }
    }
}

/// A walk over pieces to the first record at or after an offset.
struct Walk {
    offset: i64,
    /// Where the last piece ended, and whether it was a point that was read back.
    end: Point,
    replayed: bool,
    /// The last run that was passed.
    run: Option<Piece>,
}

impl Walk {
    fn through(&mut self, mut pieces: Pieces) -> Option<Answer> {
        self.end = pieces.end;
        loop {
            if pieces.pass_over(self.offset, &mut self.run) {
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
            let reason = match p.gap {
                Gap::Empty if p.len > 0 => return Some(Answer::exact(p.at.dst).by(Some(*p))),
                Gap::Empty => {
                    self.offset = p.at.src; // the record comes after it
                    self.replayed = replayed;
                    return None;
                }
                Gap::Thinned => mirror::THINNED,
                Gap::Unknown if !replayed => mirror::IN_UNKNOWN,
                _ => mirror::BEFORE_FIRST,
            };
            return Some(Answer::bound(end.dst, reason).by(self.run));
        }
        let into = self.offset - p.at.src;
        if into >= p.len {
            if p.len > 0 {
                self.run = Some(*p);
            }
            return None;
        }
        let answer = match p.gap {
            Gap::Replayed => Answer::bound(p.at.dst + into, mirror::BEFORE_FIRST),
            _ => Answer::exact(p.at.dst + into),
        };
        Some(answer.by(Some(*p)))
    }
}

impl Open<'_> {
    pub fn translate(&mut self, g: &Group) -> Answer {
        let answer = if self.h.covered < 0 {
            Answer::none(mirror::NOT_KNOWN)
        } else if g.offset() >= self.h.covered {
            self.at_end(g.offset(), g.position())
        } else {
            self.find(g.offset(), g.position())
        };
        if answer.outcome == mirror::BOUND && answer.run.is_none() {
            return answer.by(self.run_before(g.offset(), answer.offset));
        }
        answer
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
        let answer = match next {
            0.. if sure && offset <= h.covered => Answer::exact(next),
            _ => Answer::bound(next, reason),
        };
        answer.by(Some(*last))
    }

    fn find(&mut self, offset: i64, position: i64) -> Answer {
        let mut walk = Walk {
            offset,
            end: Point { src: 0, dst: -1 },
            replayed: false,
            run: None,
        };
        let mut looked = -1;
        loop {
            let tail = self.h.start.src <= walk.offset;
            let start = if tail {
                self.h.start.src
            } else {
                match self.chunk_of(walk.offset) {
                    Some(start) if start != looked => start,
                    // Nothing is there of what came next.
                    _ => return Answer::bound(walk.end.dst, mirror::THINNED).by(walk.run),
                }
            };
            looked = start;
            if !tail || walk.offset < self.h.last.at.src {
                let found = self.closed(start).and_then(|p| walk.through(p));
                if let Some(answer) = found {
                    match answer.run {
                        Some(run) if run.first > walk.offset && self.starts_at(run.first) => {
                            // What this chunk says of the run is void: it may have been
                            // cut, and gone on elsewhere.
                            walk.offset = run.first;
                            continue;
                        }
                        _ => return answer,
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

    /// Where the chunk starts that an offset is in, of those in the state.
    fn chunk_of(&self, offset: i64) -> Option<i64> {
        self.shelf.before(offset.saturating_add(1).max(0))
    }

    /// Whether a chunk starts at an offset.
    fn starts_at(&self, offset: i64) -> bool {
        self.h.start.src == offset || self.chunk_of(offset) == Some(offset)
    }

    /// The last run that ends at or before a source offset, where nothing but marks comes
    /// between it and a target offset.
    fn run_before(&mut self, offset: i64, dst: i64) -> Option<Piece> {
        let mut limit = offset;
        for _ in 0..LOOKS {
            let start = if self.h.start.src < limit {
                self.h.start.src
            } else {
                self.shelf.before(limit.max(0))?
            };
            if let Some(pieces) = self.closed(start) {
                let (from, run) = (pieces.end, pieces.last_run(limit));
                if run.is_some() || from.dst != dst {
                    return run;
                }
            }
            limit = start; // what it has beyond that is void
        }
        None
    }

    /// The pieces of the chunk that starts there, but for the last one of all.
    fn closed(&mut self, start: i64) -> Option<Pieces> {
        let tail = start == self.h.start.src;
        if tail && self.h.closed == 0 {
            return None;
        }
        let c = self.shelf.read(start, &mut self.desk.read)?;
        let closed = if tail { self.h.closed } else { c.body.len() };
        Some(Pieces::new(c.body.get(..closed).unwrap_or(&[]), c.from))
    }
}
