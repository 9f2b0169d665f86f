//! Whether the machine has enough free memory for one more process of the server.

use std::fs;

/// Whether at least half of the memory of the machine is available; `None` where the system does not tell (`/proc/meminfo`).
pub(super) fn is_half_free() -> Option<bool> {
    is_half_free_according_to(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn is_half_free_according_to(meminfo: &str) -> Option<bool> {
    let kibibytes = |name: &str| {
        let value = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(kibibytes("MemAvailable")? >= kibibytes("MemTotal")? / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_compared_with_all_of_it() {
        let meminfo = |available| {
            format!(
                "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    {available} kB\nBuffers:  1 kB\n"
            )
        };
        assert_eq!(is_half_free_according_to(&meminfo(500)), Some(true));
        assert_eq!(is_half_free_according_to(&meminfo(499)), Some(false));
        assert_eq!(is_half_free_according_to("MemTotal: 1000 kB\nMemAvailable: some kB\n"), None);
        assert_eq!(is_half_free_according_to(""), None);
    }
}
