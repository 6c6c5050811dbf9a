//! Which syncs are left out where a partition has very many runs in one frame, as
//! topics of small transactions do. Each run comes after a gap, so each would have a
//! sync. MirrorMaker does not write them all either: while ten of its sends are
//! under way, a newer sync of a partition takes the place of the one that waits.

use crate::mirror::{Commit, Frame};

/// So many runs all have their syncs: MirrorMaker's reader (OffsetSyncStore) keeps no
/// more of a partition.
const FEW: usize = 64;

/// Entries of one partition that stand together in a frame. Take them in order.
pub struct Crowd {
    frame: Frame,
    lag_max: i64,
    /// Index of the entry after the last one of them.
    until: usize,
    /// Whether there are more than a few.
    many: bool,
    /// The last target offset that they have.
    end: i64,
    /// The last target offset that has a sync; -1: none of them has.
    written: i64,
    /// The last source offset of the entry before, and what was said of that one.
    last: i64,
    spared: bool,
}

impl Crowd {
    pub fn new(frame: Frame, lag_max: i64) -> Crowd {
        Crowd {
            frame,
            lag_max,
            until: 0,
            many: false,
            end: -1,
            written: -1,
            last: -1,
            spared: false,
        }
    }

    /// Whether the entry goes without syncs.
    pub fn spares(&mut self, c: &Commit) -> bool {
        let index = c.index() as usize;
        if index >= self.until {
            self.gather(index, c);
        }
        // What goes on where the one before ended has no sync of a gap: it shares its fate.
        let goes_on = c.src_first() == self.last.wrapping_add(1);
        if self.many && !goes_on {
            self.spared = match self.next(index, c) {
                Some(next) => self.spare(c, next),
                None => false,
            };
        }
        self.last = c.src_last();
        self.many && self.spared
    }

    /// Notes that a sync of that target offset is written.
    pub fn wrote(&mut self, downstream: i64) {
        self.written = downstream;
    }

    fn gather(&mut self, index: usize, c: &Commit) {
        let mut count = 0;
        self.until = index;
        for e in self.frame.commits_from(index) {
            if !e.same_partition(c) {
                break;
            }
            self.until += 1;
            if e.stored() {
                count += 1;
                self.end = e.dst_last();
            }
        }
        self.many = count > FEW;
        self.written = -1;
        self.last = -1;
        self.spared = false;
    }

    /// Where on the target the records begin that come after the next gap.
    fn next(&self, index: usize, c: &Commit) -> Option<i64> {
        let mut last = c.src_last();
        self.frame
            .commits_from(index + 1)
            .take(self.until - index - 1)
            .filter(Commit::stored)
            .find(|e| {
                let gap = e.src_first() != last.wrapping_add(1);
                last = e.src_last();
                gap
            })
            .map(|e| first(&e))
    }

    /// A reader translates what lies before `next` to one after the last sync. Without
    /// a sync of `c` that must be wrong by no more than it is away from the end of the
    /// frame, or by `lag_max`: what holds for the syncs of a run (rule.rs).
    fn spare(&self, c: &Commit, next: i64) -> bool {
        let rises = self.written >= 0 && self.written < first(c) && first(c) < next;
        let wrong = next.wrapping_sub(self.written).wrapping_sub(2);
        let ahead = self.end.wrapping_sub(next).wrapping_add(1);
        rises && next <= self.end && wrong <= self.lag_max.max(ahead)
    }
}

/// Where on the target an entry's first known record is.
fn first(c: &Commit) -> i64 {
    if c.one_to_one() {
        c.dst_first()
    } else {
        c.dst_last()
    }
}
