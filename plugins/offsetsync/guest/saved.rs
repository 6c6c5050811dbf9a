//! The blob of a save: what is known of each partition, for the instance of the
//! next generation. First the layout's version, a byte; then for each partition
//! the name's length u8, the name, partition i32, upstream, downstream and due i64,
//! held u8; little-endian.

use crate::mirror;
use crate::rule::State;
use crate::table::Table;

const VERSION: u8 = 1;

/// What of a partition has a fixed length.
const FIXED: usize = 30;

/// Saves the partitions that there is room for. The others begin with a sync.
pub fn write(partitions: &Table) -> Result<(), i32> {
    let room = partitions.scratch(mirror::SAVE_HEAD.len() + mirror::MAX_SAVE)?;
    let mut out = Writer { room, len: 0 };
    out.put(&mirror::SAVE_HEAD);
    out.put(&[VERSION]);
    partitions.each(|topic, partition, s| {
        if topic.len() + FIXED > out.room.len() - out.len {
            return;
        }
        out.put(&[topic.len() as u8]);
        out.put(topic);
        out.put(&partition.to_le_bytes());
        for offset in [s.upstream, s.downstream, s.due] {
            out.put(&offset.to_le_bytes());
        }
        out.put(&[s.held as u8]);
    });
    mirror::emit(&out.room[..out.len])
}

/// A blob that is not one is refused. What was read of it until then stays; the
/// host goes on with an instance that knows nothing.
pub fn read(blob: &[u8], partitions: &mut Table) -> Result<(), i32> {
    let bad = || {
        mirror::fail(
            mirror::BAD_INPUT,
            &[b"what was saved is not of this plugin, version 1"],
        )
    };
    let mut blob = Reader(blob);
    if blob.u8().ok_or_else(bad)? != VERSION {
        return Err(bad());
    }
    while !blob.0.is_empty() {
        let (topic, partition, state) = blob.partition().ok_or_else(bad)?;
        *partitions.get_or_add(topic, partition)? = state;
    }
    Ok(())
}

struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.room[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.0.get(..len)?;
        self.0 = &self.0[len..];
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn partition(&mut self) -> Option<(&'a [u8], i32, State)> {
        let name_len = self.u8()?;
        let topic = self.take(name_len as usize)?;
        let partition = i32::from_le_bytes(self.array()?);
        let s = State {
            upstream: self.i64()?,
            downstream: self.i64()?,
            due: self.i64()?,
            held: self.u8()? != 0,
        };
        (s.upstream >= 0 && s.due >= 0 && s.due <= s.downstream).then_some((topic, partition, s))
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
}
