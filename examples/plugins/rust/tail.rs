//! An offset policy: a sync for the last record of each range that was copied, the
//! most that one can know about where a topic's readers should go on.
#![no_std]
#![crate_type = "cdylib"]

#[path = "../../../abi/rust/mirror.rs"]
mod mirror;

use mirror::{Commit, Frame};

fn on_commit(frame: Frame) -> Result<(), i32> {
    if frame.has(mirror::REPLAY) {
        return Ok(());
    }
    for c in frame.commits().filter(Commit::stored) {
        c.sync(c.src_last(), c.dst_last())?;
    }
    Ok(())
}

#[no_mangle]
unsafe extern "C" fn mirror_on_commit(ptr: *const u8, len: u32) -> i32 {
    let told = Frame::at(ptr, len, mirror::COMMITS).and_then(on_commit);
    told.err().unwrap_or(mirror::OK)
}
