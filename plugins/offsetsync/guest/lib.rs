//! The plugin `offset-sync`: knows where on the target the records of the source are.
//!
//! It keeps that for each run of records (history.rs, chunk.rs, runs.rs) in the durable
//! state of their partition, and by it tells where on the target consumer groups go on
//! (lookup.rs).
//!
//! And it tells MirrorMaker 2, by offset syncs: the record at `upstream` was stored at
//! `downstream`. When one is written is MirrorMaker's own rule (rule.rs). What that
//! rests on (table.rs) may be lost with the instance at any time: a partition that is
//! not known begins with a sync. A reload carries it over (saved.rs).
#![no_std]
#![crate_type = "cdylib"]

#[path = "../../../abi/rust/mirror.rs"]
mod mirror;
#[path = "../../../abi/rust/state.rs"]
mod state;

mod chunk;
mod config;
mod crowd;
mod cut;
mod history;
mod keep;
mod ledger;
mod lookup;
mod room;
mod rule;
mod runs;
mod saved;
mod table;

use config::Config;
use crowd::Crowd;
use history::Desk;
use mirror::{Commit, Frame};
use rule::{Run, State};
use state::Counter;
use table::Table;

struct Plugin {
    config: Config,
    partitions: Table,
    desk: Desk,
}

/// The one instance. A guest has one thread, and a hook does not call another.
fn plugin() -> &'static mut Plugin {
    static mut PLUGIN: Plugin = Plugin {
        config: Config::NONE,
        partitions: Table::EMPTY,
        desk: Desk::EMPTY,
    };
    unsafe { &mut *core::ptr::addr_of_mut!(PLUGIN) }
}

/// What the host is told: 0, or why not.
fn status(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(mirror::OK)
}

#[no_mangle]
unsafe extern "C" fn mirror_init(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::INIT).and_then(|frame| {
        let Plugin { config, desk, .. } = plugin();
        *config = Config::read(frame.extra(mirror::CONFIG_FLAT).unwrap_or(&[]))?;
        if config.translate {
            desk.given_up = Counter::define(b"runs_given_up");
            return state::schema(ledger::SCHEMA);
        }
        Ok(())
    }))
}

/// For syncs, the offsets of a partition that is gone, made anew or cut off say nothing
/// about those that come.
#[no_mangle]
unsafe extern "C" fn mirror_on_partitions(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::PARTITIONS).and_then(|frame| {
        let Plugin {
            config,
            partitions,
            desk,
        } = plugin();
        for p in frame.partitions() {
            let (topic, partition) = (p.topic(), p.partition());
            match p.event() {
                mirror::REVOKED | mirror::RECREATED => partitions.remove(topic, partition),
                mirror::TRUNCATED => partitions.forget_syncs(topic, partition),
                _ => {}
            }
        }
        match config.translate {
            true => ledger::partitions(frame, partitions, desk),
            false => Ok(()),
        }
    }))
}

#[no_mangle]
unsafe extern "C" fn mirror_on_commit(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::COMMITS).and_then(|frame| {
        let Plugin {
            config,
            partitions,
            desk,
        } = plugin();
        if config.mm2_syncs {
            on_commit(frame, config.lag_max, partitions)?;
        }
        if config.translate {
            ledger::commits(frame, partitions, desk)?;
        }
        Ok(())
    }))
}

#[no_mangle]
unsafe extern "C" fn mirror_on_groups(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::GROUPS).and_then(|frame| {
        let Plugin {
            config,
            partitions,
            desk,
        } = plugin();
        match config.translate {
            true => ledger::groups(frame, partitions, desk),
            false => ledger::no_groups(frame),
        }
    }))
}

fn on_commit(frame: Frame, lag_max: i64, partitions: &mut Table) -> Result<(), i32> {
    // What is due for a run's first record, and what a flush writes, is not counted.
    let most = mirror::MAX_SYNCS / frame.count().max(1) as u32 - 2;
    let mut crowd = Crowd::new(frame, lag_max);
    // MirrorMaker never sees what left no record: after it there is a gap.
    let mut entries = frame.commits().filter(Commit::stored).peekable();
    while let Some(c) = entries.next() {
        let state = partitions.get_or_add(c.topic(), c.partition())?;
        let mut next = Some(c);
        while let Some(c) = next {
            let (last, stored) = (c.src_last(), c.dst_last());
            if frame.has(mirror::REPLAY) {
                *state = State::synced(last, stored);
            } else {
                // Which of the range's offsets are where is not known if some were left
                // out. But who is past the last one is past all of them.
                let first = if c.one_to_one() { c.src_first() } else { last };
                let run = Run {
                    first,
                    last,
                    stored,
                };
                let spared = crowd.spares(&c);
                state.run(lag_max, run, most, |upstream, downstream| {
                    if spared {
                        return Ok(());
                    }
                    crowd.wrote(downstream);
                    c.sync(upstream, downstream)
                })?;
            }
            next = entries.next_if(|next| next.same_partition(&c));
        }
    }
    if frame.has(mirror::FLUSH) {
        flush(frame, partitions)?;
    }
    Ok(())
}

/// Emits what is held back of the frame's partitions.
fn flush(frame: Frame, partitions: &mut Table) -> Result<(), i32> {
    let mut entries = frame.commits().peekable();
    while let Some(c) = entries.next() {
        if entries.peek().map_or(false, |next| next.same_partition(&c)) {
            continue;
        }
        let state = partitions.get(c.topic(), c.partition());
        if let Some((upstream, downstream)) = state.and_then(State::take_held) {
            c.sync(upstream, downstream)?;
        }
    }
    Ok(())
}

#[no_mangle]
unsafe extern "C" fn mirror_save(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::SAVE).and_then(|_| saved::write(&plugin().partitions)))
}

#[no_mangle]
unsafe extern "C" fn mirror_restore(ptr: *const u8, len: u32) -> i32 {
    status(Frame::at(ptr, len, mirror::RESTORE).and_then(|frame| {
        saved::read(
            frame.extra(mirror::BLOB).unwrap_or(&[]),
            &mut plugin().partitions,
        )
    }))
}
