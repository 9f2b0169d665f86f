//! FNV-1a of 64 bits: a hash that is the same on every machine and in every version.

/// The state of the hash before the first byte.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of these bytes.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    hash_from(START, bytes)
}

/// The hash of these bytes after those that led to a state.
pub(crate) fn hash_from(state: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(state, |state, byte| (state ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(*b""), START);
        assert_eq!(hash(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(*b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(hash_from(hash(*b"foo"), *b"bar"), hash(*b"foobar"));
    }
}
