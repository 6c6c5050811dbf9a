//! Durable state and metrics for guests in Rust: imports of mirror_v1 (../SPEC.md, 4)
//! beside those that mirror.rs has. A plugin that uses them includes this file too:
//!
//! ```ignore
//! #[path = "../../abi/rust/state.rs"]
//! mod state;
//! ```
#![allow(dead_code)] // a plugin uses what it needs

use crate::mirror;
use core::ptr;

const EMIT_SCHEMA: u16 = 5;

mod host {
    #[link(wasm_import_module = "mirror_v1")]
    extern "C" {
        pub fn state_get(e: u32, key: *const u8, len: u32, buf: *mut u8, limit: u32) -> i32;
        pub fn state_put(e: u32, key: *const u8, len: u32, value: *const u8, size: i32) -> i32;
        pub fn state_next(e: u32, key: *const u8, len: u32, buf: *mut u8, limit: u32) -> i32;
        pub fn metric_define(kind: i32, ptr: *const u8, len: u32) -> i32;
        pub fn metric(id: i32, op: i32, value: i64) -> i32;
    }
}

/// Durable keys and values of one source partition: that of an entry, so it is of no use
/// once the hook has returned. Their plugin has emitted a schema in `mirror_init`.
/// `Err` is a status.
#[derive(Clone, Copy)]
pub struct State(u32);

impl State {
    /// That of the entry with an index.
    pub fn of(entry: u32) -> State {
        State(entry)
    }
    /// The length of the value, which is in `buf` if it is not longer than that.
    pub fn get(self, key: &[u8], buf: &mut [u8]) -> Result<usize, i32> {
        let (k, n) = (key.as_ptr(), key.len() as u32);
        length(unsafe { host::state_get(self.0, k, n, buf.as_mut_ptr(), buf.len() as u32) })
    }
    pub fn put(self, key: &[u8], value: &[u8]) -> Result<(), i32> {
        let (k, n) = (key.as_ptr(), key.len() as u32);
        let put = unsafe { host::state_put(self.0, k, n, value.as_ptr(), value.len() as i32) };
        length(put).map(|_| ())
    }
    pub fn delete(self, key: &[u8]) -> Result<(), i32> {
        let (k, n) = (key.as_ptr(), key.len() as u32);
        length(unsafe { host::state_put(self.0, k, n, ptr::null(), -1) }).map(|_| ())
    }
    /// The length of the first key after `key`, in the order of bytes; after an empty one
    /// the first of all. It is in `buf` if it is not longer than that.
    pub fn next(self, key: &[u8], buf: &mut [u8]) -> Result<usize, i32> {
        let (k, n) = (key.as_ptr(), key.len() as u32);
        length(unsafe { host::state_next(self.0, k, n, buf.as_mut_ptr(), buf.len() as u32) })
    }
}

/// The emit that says in `mirror_init` how the plugin writes its state: 1 to 64
/// printable ASCII characters without spaces.
pub fn schema(text: &[u8]) -> Result<(), i32> {
    let mut b = [0; 8 + 64];
    b[0..2].copy_from_slice(&EMIT_SCHEMA.to_le_bytes());
    b[4..8].copy_from_slice(&u32::MAX.to_le_bytes()); // about no entry
    let len = text.len().min(64);
    b[8..8 + len].copy_from_slice(&text[..len]);
    mirror::emit(&b[..8 + len])
}

fn length(status: i32) -> Result<usize, i32> {
    usize::try_from(status).map_err(|_| status)
}

/// A counter that the host shows. One that it refused counts nothing.
#[derive(Clone, Copy)]
pub struct Counter(i32); // its id plus one, so that NONE is zero

impl Counter {
    pub const NONE: Counter = Counter(0);

    /// The text is the name, and NUL key NUL value for each label.
    pub fn define(text: &[u8]) -> Counter {
        let id = unsafe { host::metric_define(0, text.as_ptr(), text.len() as u32) };
        Counter(id.max(-1) + 1)
    }

    pub fn add(self, n: u32) {
        if self.0 > 0 && n > 0 {
            unsafe { host::metric(self.0 - 1, 0, n.into()) };
        }
    }
}
