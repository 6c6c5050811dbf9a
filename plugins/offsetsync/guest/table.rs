//! The partitions that are known: a hash table in the memory after everything else
//! of the instance, which nothing else uses. Slots have a fixed size, with room for
//! the longest name that a topic can have, so a free one fits any other partition,
//! and memory grows with the partitions that there are at a time.

use crate::history::History;
use crate::mirror;
use crate::rule::State;
use core::{arch::wasm32, mem, ptr, slice};

/// Kafka's limit.
pub const LONGEST_NAME: usize = 249;

const PAGE: usize = 1 << 16;
const CHAINS: usize = 1 << 12;

/// A slot's number, from 1 on; 0 is none.
type Link = u32;

struct Slot {
    state: State,
    history: History,
    partition: i32,
    /// The next slot of the same chain, or of those that are free.
    next: Link,
    /// 0 in a free slot.
    name_len: u8,
    name: [u8; LONGEST_NAME],
}

impl Slot {
    fn name(&self) -> &[u8] {
        self.name.get(..self.name_len as usize).unwrap_or(&[])
    }
}

pub struct Table {
    /// The first slot of each chain.
    chains: [Link; CHAINS],
    free: Link,
    /// How many slots were ever in use.
    used: u32,
}

impl Table {
    pub const EMPTY: Table = Table {
        chains: [0; CHAINS],
        free: 0,
        used: 0,
    };

    pub fn get(&mut self, topic: &[u8], partition: i32) -> Option<&mut State> {
        let link = *self.find(topic, partition);
        (link != 0).then(|| &mut slot(link).state)
    }

    /// `Err` is the status to return: the name is none of a topic, or there is no
    /// memory for one more.
    pub fn get_or_add(&mut self, topic: &[u8], partition: i32) -> Result<&mut State, i32> {
        Ok(&mut self.slot_or_add(topic, partition)?.state)
    }

    /// The same for what is known of where its records went.
    pub fn history(&mut self, topic: &[u8], partition: i32) -> Result<&mut History, i32> {
        Ok(&mut self.slot_or_add(topic, partition)?.history)
    }

    /// The same of a partition that there is.
    pub fn known(&mut self, topic: &[u8], partition: i32) -> Option<&mut History> {
        let link = *self.find(topic, partition);
        (link != 0).then(|| &mut slot(link).history)
    }

    fn slot_or_add(&mut self, topic: &[u8], partition: i32) -> Result<&mut Slot, i32> {
        let found = *self.find(topic, partition);
        if found != 0 {
            return Ok(slot(found));
        }
        if topic.is_empty() || topic.len() > LONGEST_NAME {
            return Err(mirror::fail(
                mirror::BAD_INPUT,
                &[b"a topic's name has 1 to 249 bytes"],
            ));
        }
        let link = self.take()?;
        let chain = self.find(topic, partition);
        *chain = link;
        let s = slot(link);
        s.state = State::NEW;
        s.history = History::NEW;
        s.partition = partition;
        s.next = 0;
        s.name_len = topic.len() as u8;
        s.name[..topic.len()].copy_from_slice(topic);
        Ok(s)
    }

    /// Has the partition begin with a sync again.
    pub fn forget_syncs(&mut self, topic: &[u8], partition: i32) {
        if let Some(state) = self.get(topic, partition) {
            *state = State::NEW;
        }
    }

    pub fn remove(&mut self, topic: &[u8], partition: i32) {
        let place = self.find(topic, partition);
        let link = *place;
        if link != 0 {
            let s = slot(link);
            *place = s.next;
            s.name_len = 0;
            s.next = self.free;
            self.free = link;
        }
    }

    /// Calls `each` with every partition of which records have been told.
    pub fn each(&self, mut each: impl FnMut(&[u8], i32, &State)) {
        let told = |s: &&mut Slot| s.name_len > 0 && s.state.due >= 0;
        for s in (1..=self.used).map(slot).filter(told) {
            each(s.name(), s.partition, &s.state);
        }
    }

    /// The link that leads to the partition's slot, or the one at its chain's end.
    fn find(&mut self, topic: &[u8], partition: i32) -> &mut Link {
        let mut place = &mut self.chains[hash(topic, partition) % CHAINS];
        while *place != 0 {
            let s = slot(*place);
            if s.partition == partition && s.name() == topic {
                break;
            }
            place = &mut s.next;
        }
        place
    }

    /// A slot that is not in use.
    fn take(&mut self) -> Result<Link, i32> {
        if self.free != 0 {
            let link = self.free;
            self.free = slot(link).next;
            return Ok(link);
        }
        reserve(address(self.used + 2))?;
        self.used += 1;
        Ok(self.used)
    }

    /// Memory after the slots, until the next partition is added.
    pub fn scratch(&self, len: usize) -> Result<&'static mut [u8], i32> {
        let start = address(self.used + 1);
        reserve(start.saturating_add(len))?;
        Ok(unsafe { slice::from_raw_parts_mut(start as *mut u8, len) })
    }
}

/// Makes memory reach to an address.
fn reserve(end: usize) -> Result<(), i32> {
    let have = wasm32::memory_size::<0>() * PAGE;
    if end > have && wasm32::memory_grow::<0>((end - have + PAGE - 1) / PAGE) == usize::MAX {
        return Err(mirror::fail(
            mirror::NO_MEMORY,
            &[b"no memory for more partitions: raise limits.memory"],
        ));
    }
    Ok(())
}

extern "C" {
    /// Where the linker says that memory is free.
    static __heap_base: u8;
}

/// Where a slot is; that of the one after the last is where memory is free.
fn address(link: Link) -> usize {
    let base = unsafe { ptr::addr_of!(__heap_base) } as usize;
    let align = mem::align_of::<Slot>();
    (base + align - 1) / align * align + (link as usize - 1) * mem::size_of::<Slot>()
}

/// A slot that take has given. No two are looked at at once, for the plugin holds
/// the table alone.
fn slot(link: Link) -> &'static mut Slot {
    unsafe { &mut *(address(link) as *mut Slot) }
}

/// FNV-1a.
fn hash(topic: &[u8], partition: i32) -> usize {
    let number = partition.to_le_bytes();
    topic.iter().chain(&number).fold(0x811c_9dc5_u32, |h, &b| {
        (h ^ b as u32).wrapping_mul(0x0100_0193)
    }) as usize
}
