//! The hooks' part of translation: each entry goes to its partition's history.

use crate::history::{Desk, Open};
use crate::lookup::Answer;
use crate::mirror::{self, Frame};
use crate::room;
use crate::table::Table;

/// Identifies how the histories are written (chunk.rs, runs.rs).
pub const SCHEMA: &[u8] = b"runs-1";

/// What happened to partitions. Of one that is made anew the state is gone already.
pub fn partitions(frame: Frame, table: &mut Table, desk: &mut Desk) -> Result<(), i32> {
    desk.budget = room::BUDGET;
    for p in frame.partitions() {
        let begins = match p.event() {
            mirror::ASSIGNED | mirror::RECREATED | mirror::TRUNCATED => true,
            mirror::LOG_START => false,
            _ => continue,
        };
        let h = table.history(p.topic(), p.partition())?;
        let mut open = Open::new(h, p.index(), desk);
        if begins {
            open.assigned(&p);
        }
        open.trim(p.log_start());
        open.close();
    }
    Ok(())
}

/// What has become of ranges, and what is about to be saved.
pub fn commits(frame: Frame, table: &mut Table, desk: &mut Desk) -> Result<(), i32> {
    desk.budget = room::BUDGET;
    let mut entries = frame.commits().peekable();
    while let Some(c) = entries.next() {
        let h = table.history(c.topic(), c.partition())?;
        let mut open = Open::new(h, c.index(), desk);
        open.commit(&c, frame.has(mirror::REPLAY));
        while let Some(c) = entries.next_if(|next| next.same_partition(&c)) {
            open.commit(&c, frame.has(mirror::REPLAY));
        }
        open.close();
    }
    if frame.has(mirror::FLUSH) {
        let mut entries = frame.commits().peekable();
        while let Some(c) = entries.next() {
            if !entries.peek().map_or(false, |next| next.same_partition(&c)) {
                let h = table.history(c.topic(), c.partition())?;
                Open::new(h, c.index(), desk).flush();
            }
        }
    }
    Ok(())
}

/// Where groups go on.
pub fn groups(frame: Frame, table: &mut Table, desk: &mut Desk) -> Result<(), i32> {
    for g in frame.groups() {
        let answer = match table.known(g.topic(), g.partition()) {
            Some(h) => Open::new(h, g.index(), desk).translate(&g),
            None => Answer::none(mirror::NOT_KNOWN),
        };
        g.translation(answer.offset, answer.outcome, answer.reason, answer.run)?;
    }
    Ok(())
}

/// Answers that nothing is known.
pub fn no_groups(frame: Frame) -> Result<(), i32> {
    let none = Answer::none(mirror::NOT_KNOWN);
    frame
        .groups()
        .try_for_each(|g| g.translation(none.offset, none.outcome, none.reason, none.run))
}
