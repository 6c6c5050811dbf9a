//! When MirrorMaker writes an offset sync: `OffsetSyncWriter` of Kafka 4.3.1, held
//! to that class by tests.

/// Records of the source offsets first..=last, stored one after the other, the last
/// one at `stored`.
pub struct Run {
    pub first: i64,
    pub last: i64,
    pub stored: i64,
}

/// What is known of a partition.
#[derive(Clone, Copy)]
pub struct State {
    /// The last record that was stored: its source and its target offset, or -1.
    pub upstream: i64,
    pub downstream: i64,
    /// The target offset of the last sync that was due by the rule, or -1. (One that
    /// a flush writes is not.)
    pub due: i64,
    /// Whether the last record's sync is held back until the next flush.
    pub held: bool,
}

impl State {
    pub const NEW: State = State {
        upstream: -1,
        downstream: -1,
        due: -1,
        held: false,
    };

    /// The state where the sync of the last record is written already.
    pub fn synced(upstream: i64, downstream: i64) -> State {
        State {
            upstream,
            downstream,
            due: downstream,
            held: false,
        }
    }

    /// Takes in one record and says whether its sync is due: the first of the
    /// partition, one after a gap in the source, one where the target was rewound,
    /// and one that is `lag_max` past where a reader translates to, which is the
    /// offset after the last sync.
    fn record(&mut self, lag_max: i64, upstream: i64, downstream: i64) -> bool {
        let due = self.due == -1
            || downstream.wrapping_sub(self.due.wrapping_add(1)) >= lag_max
            || upstream.wrapping_sub(self.upstream) != 1
            || downstream < self.downstream;
        if due {
            self.due = downstream;
        }
        self.upstream = upstream;
        self.downstream = downstream;
        self.held = !due;
        due
    }

    /// Takes in a run of records and hands over syncs in ascending order. The state is
    /// then what it is after one record at a time. After the first record only the lag
    /// makes syncs due, each `lag_max + 1` after the one before; of these, those are
    /// handed over that are the last, one before it, two, four, eight..., `most` of
    /// them. So the nearest sync is never further back than the end of the run is ahead,
    /// or `lag_max`: of all of them MirrorMaker's reader (OffsetSyncStore) would keep
    /// about as many.
    pub fn run<F>(&mut self, lag_max: i64, run: Run, most: u32, mut sync: F) -> Result<(), i32>
    where
        F: FnMut(i64, i64) -> Result<(), i32>,
    {
        let Run {
            first,
            last,
            stored,
        } = run;
        let shift = stored.wrapping_sub(last);
        if self.record(lag_max, first, first.wrapping_add(shift)) {
            sync(first, self.downstream)?;
        }
        if first == last {
            return Ok(());
        }
        self.upstream = last;
        self.downstream = stored;
        self.held = true;
        let step = lag_max.saturating_add(1);
        let next = self.due.saturating_add(step);
        if next > stored {
            return Ok(());
        }
        let before = (stored - next) / step; // as many are due before the last one
        self.due = next + before * step;
        self.held = self.due != stored;
        let powers = (i64::BITS - before.leading_zeros()).min(most - 1);
        for back in (0..powers).rev().map(|n| 1 << n).chain([0]) {
            let downstream = self.due - back * step;
            sync(downstream.wrapping_sub(shift), downstream)?;
        }
        Ok(())
    }

    /// The pair whose sync was held back, which it is no more.
    pub fn take_held(&mut self) -> Option<(i64, i64)> {
        core::mem::take(&mut self.held).then_some((self.upstream, self.downstream))
    }
}
