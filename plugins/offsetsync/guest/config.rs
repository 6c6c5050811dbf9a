//! The plugin's own table of the config file.

use crate::mirror;

pub struct Config {
    /// How far the target may move between two syncs: MirrorMaker's `offset.lag.max`.
    pub lag_max: i64,
    /// Whether MirrorMaker's offset syncs are written at all.
    pub mm2_syncs: bool,
    /// Whether it is kept where each record went, and offsets of groups are translated.
    pub translate: bool,
}

impl Config {
    /// Before `mirror_init`; zeros, so that the module need not carry them.
    pub const NONE: Config = Config {
        lag_max: 0,
        mm2_syncs: false,
        translate: false,
    };

    const DEFAULT: Config = Config {
        lag_max: 100,
        mm2_syncs: true,
        translate: true,
    };

    /// Reads the flattened form: each key and each value with a zero after it.
    pub fn read(flat: &[u8]) -> Result<Config, i32> {
        let mut config = Config::DEFAULT;
        let mut parts = flat.split(|&b| b == 0);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            match key {
                b"lag_max" => {
                    config.lag_max = number(value)
                        .ok_or_else(|| bad(key, value, b"a number of offsets from 0 on"))?
                }
                b"mm2_syncs" => config.mm2_syncs = switch(key, value)?,
                b"translate" => config.translate = switch(key, value)?,
                _ => {
                    return Err(mirror::fail(
                        mirror::BAD_INPUT,
                        &[
                            b"config: no key \"",
                            key,
                            b"\": there are lag_max, mm2_syncs and translate",
                        ],
                    ))
                }
            }
        }
        Ok(config)
    }
}

fn bad(key: &[u8], value: &[u8], want: &[u8]) -> i32 {
    mirror::fail(
        mirror::BAD_INPUT,
        &[b"config: ", key, b" is \"", value, b"\", want ", want],
    )
}

fn switch(key: &[u8], value: &[u8]) -> Result<bool, i32> {
    match value {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(bad(key, value, b"true or false")),
    }
}

/// A decimal number without a sign.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |n, d| match d {
        b'0'..=b'9' => n.checked_mul(10)?.checked_add((d - b'0').into()),
        _ => None,
    })
}
