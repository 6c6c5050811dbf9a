//! What happens when the partition's state is full: runs of the oldest chunks are given
//! up, all but one of KEEP, and what is left of several chunks goes into one. When most
//! of the state is made of such chunks they are thinned again. So what is near the end
//! stays exact, and the further back a group is, the more it may repeat.

use crate::chunk::{self, Chunk, FULL};
use crate::history::Open;
use crate::runs::{Gap, Piece};

/// Of so many runs one stays.
const KEEP: usize = 32;

/// How many chunks are thinned at most: many, to look for them once in a while only.
const MOST: usize = 32;

/// Chunks of one level are thinned while they have that share of the room, the youngest
/// level first: so there is as much for what is exact, and most for what was thinned once.
const SHARE: usize = 4;

/// How many levels are told apart; all beyond count as one. Each has KEEP times as many
/// runs as the one before.
const LEVELS: usize = 6;

/// How many chunks may be looked at in one call: some tens of milliseconds.
pub const BUDGET: u32 = 8192;

/// Chunks of a level, one behind the other.
#[derive(Clone, Copy)]
struct Zone {
    count: usize,
    /// Bytes of their pieces.
    size: usize,
    /// Where the oldest ones start, by their number.
    oldest: [i64; MOST],
}

impl Zone {
    const NONE: Zone = Zone {
        count: 0,
        size: 0,
        oldest: [0; MOST],
    };

    fn add(&mut self, start: i64, size: usize) {
        self.oldest[self.count % MOST] = start;
        self.count += 1;
        self.size += size;
    }
}

impl Open<'_> {
    /// Whether some room was made. It leaves desk.out and desk.body alone.
    pub fn make_room(&mut self) -> bool {
        let zone = self.choose();
        let some = (zone.count / 8).clamp(1, MOST).min(zone.count);
        let mut made = false;
        for n in (zone.count - some..zone.count).rev() {
            made |= self.thin(zone.oldest[n % MOST]);
        }
        made
    }

    /// The youngest zone that has its share, else the largest; none if there is not the
    /// time to look at all chunks.
    fn choose(&mut self) -> Zone {
        let mut zones = [Zone::NONE; LEVELS];
        let mut next = self.shelf.last();
        while let Some(start) = next {
            next = self.shelf.before(start);
            if start >= self.h.start.src {
                continue; // the last one is still written
            }
            if self.desk.budget == 0 {
                return Zone::NONE;
            }
            self.desk.budget -= 1;
            if let Some(c) = self.shelf.read(start, &mut self.desk.read) {
                zones[(c.level as usize).min(LEVELS - 1)].add(start, c.body.len());
            }
        }
        let all: usize = zones.iter().map(|z| z.size).sum();
        let share = zones.iter().find(|z| z.count > 0 && z.size >= all / SHARE);
        let largest = || zones.iter().max_by_key(|z| z.size).unwrap_or(&Zone::NONE);
        *share.unwrap_or_else(largest)
    }

    /// Thins a chunk, and joins it to the one before if that has the same level then.
    fn thin(&mut self, start: i64) -> bool {
        let c = match self.shelf.read(start, &mut self.desk.read) {
            Some(c) => c,
            None => return false,
        };
        let (level, from) = ((c.level + 1).min(0x7f), c.from);
        let head = chunk::head(level, true, from, &mut self.desk.spare);
        let (len, dropped) = thinned(&c, &mut self.desk.spare[head..]);
        let len = if dropped == 0 {
            self.desk.spare[head..head + c.body.len()].copy_from_slice(c.body);
            c.body.len()
        } else {
            len
        };
        let all = &self.desk.spare[..head + len];
        let made = dropped > 0 && self.shelf.put(start, all);
        if dropped > 0 && !made {
            return false;
        }
        self.desk.given_up.add(dropped);
        let older = match self.shelf.before(start) {
            Some(older) => older,
            None => return made,
        };
        let o = match self.shelf.read(older, &mut self.desk.read) {
            Some(o) => o,
            None => return made,
        };
        if o.level != level || o.body.len() + len > FULL || o.end() != from {
            return made;
        }
        let head = chunk::head(level, true, o.from, &mut [0; chunk::HEAD]);
        let end = head + o.body.len();
        self.desk.read[end..end + len].copy_from_slice(&all[all.len() - len..]);
        if !self.shelf.put(older, &self.desk.read[..end + len]) {
            return made;
        }
        self.shelf.delete(start);
        true
    }
}

/// Writes what stays of a chunk: how many bytes that are, and how many runs do not.
fn thinned(c: &Chunk, out: &mut [u8]) -> (usize, u32) {
    let (mut len, mut end, mut runs, mut dropped) = (0, c.from, 0, 0);
    let mut pieces = c.pieces();
    let mut gone = false; // something since the last one that stays
    let mut placed = true;
    while let Some(p) = pieces.next() {
        placed = p.placed;
        if p.len == 0 || runs % KEEP > 0 {
            gone = true;
            dropped += (p.len > 0) as u32;
            runs += (p.len > 0) as usize;
            continue;
        }
        runs += 1;
        let gap = if gone && p.gap != Gap::Replayed {
            Gap::Thinned
        } else {
            p.gap
        };
        len += Piece { gap, ..p }.write(end, &mut out[len..]);
        end = p.end();
        gone = false;
    }
    if gone {
        let mark = Piece {
            gap: Gap::Thinned,
            placed,
            ..Piece::none(pieces.end)
        };
        len += mark.write(end, &mut out[len..]);
    }
    (len, dropped)
}
