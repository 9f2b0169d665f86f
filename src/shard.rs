//! Shards: a part of the cases for each of several machines.
//!
//! The shard of a case follows from its id alone, so that machines need not communicate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fnv;

/// One of several parts, written `2/3`.
///
/// # Examples
///
/// ```
/// use mcp_conformance::report::Shard;
///
/// let second: Shard = "2/3".parse().expect("a shard");
/// assert_eq!((second.number, second.of), (2, 3));
/// assert!("4/3".parse::<Shard>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Which part, counted from 1.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Shard {
    /// Whether something of this name belongs to the part.
    #[must_use]
    pub fn holds(self, name: &str) -> bool {
        fnv::hash(name.bytes()) % u64::from(self.of.max(1)) == u64::from(self.number.saturating_sub(1))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

/// A string that is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard; write it as K/N, such as 1/3, with K from 1 to N and N at most 1000")]
pub struct NoShard(pub String);

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || NoShard(text.to_owned());
        let (number, of) = text.split_once('/').ok_or_else(fault)?;
        let (number, of): (u32, u32) = (number.parse().map_err(|_| fault())?, of.parse().map_err(|_| fault())?);
        if (1..=1000).contains(&of) && (1..=of).contains(&number) { Ok(Self { number, of }) } else { Err(fault()) }
    }
}

impl TryFrom<String> for Shard {
    type Error = NoShard;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_belongs_to_exactly_one_shard() {
        for of in [1, 2, 3, 7] {
            for name in ["tools/call/unknown-tool", "jsonrpc/id-zero", "", "é"] {
                let holders = (1..=of).filter(|number| Shard { number: *number, of }.holds(name)).count();
                assert_eq!(holders, 1, "{name} of {of}");
            }
        }
    }

    #[test]
    fn a_shard_parses_and_prints() {
        assert_eq!("2/3".parse::<Shard>().map(|shard| shard.to_string()), Ok("2/3".to_owned()));
        for text in ["", "3", "0/3", "4/3", "1/0", "1/1001", "a/b", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
