//! The keyed hash of a value that a run has read.
//!
//! The hashes are stored with the run, so their algorithm may not change: it is `SipHash` 2-4. We do not use the
//! `DefaultHasher` of `std`, whose algorithm may be another one with each compiler.

#![expect(deprecated, reason = "the algorithm that does not change")]

use std::hash::{Hasher as _, SipHasher};

/// A hash with the key of one run.
#[derive(Clone)]
pub(super) struct KeyedHash(SipHasher);

impl KeyedHash {
    pub(super) fn new(key: [u8; 16]) -> Self {
        let [low, high] = [0, 8].map(|at| {
            let half = key.iter().skip(at).take(8).rev();
            half.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        });
        Self(SipHasher::new_with_keys(low, high))
    }

    /// The hash of a value in one of its forms.
    pub(super) fn of(&self, form: u8, value: &str) -> u64 {
        let mut hasher = self.0.clone();
        hasher.write_u8(form);
        hasher.write(value.as_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::KeyedHash;

    /// The bytes of the reference implementation's first test, `00 01 02 … 0f` as the key.
    #[test]
    fn it_is_siphash_2_4() {
        let key: [u8; 16] = std::array::from_fn(|n| u8::try_from(n).unwrap());
        let text: String = (1..15).map(char::from).collect();
        assert_eq!(KeyedHash::new(key).of(0, &text), 0xa129_ca61_49be_45e5);
    }
}
