//! Reads the system's process table, if it shows one (Linux, `/proc`).

use std::collections::BTreeSet;

/// A process in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// The state: `R` is running, `D` waits for a disk, `Z` has ended and was not reaped.
    pub(super) state: char,
    /// Processor time, including that of children that have ended, in ticks of the system's clock.
    pub(super) ticks: u64,
}

/// All processes; none if the system shows no table.
pub(super) fn processes() -> Vec<ProcessEntry> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let Ok(names) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = names.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that has ended meanwhile is left out.
    numbers.filter_map(|pid| parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// The names of the processes of a group that have not ended, each once, in alphabetical order; `None` if the system shows no
/// table.
pub(super) fn running_in_group(group: i32) -> Option<Vec<String>> {
    let all = processes();
    let running = all.iter().filter(|entry| entry.group == group && entry.state != 'Z');
    let names = running.filter_map(|entry| std::fs::read(format!("/proc/{}/comm", entry.pid)).ok());
    let names: BTreeSet<String> = names.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned()).collect();
    (!all.is_empty()).then(|| names.into_iter().collect())
}

/// Parses a line of `/proc/*/stat`.
fn parse_stat(pid: i32, stat: &str) -> Option<ProcessEntry> {
    // After the command name, which is in parentheses and may contain anything, follow the state, the parent and the
    // group; the four times follow from the twelfth field on.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some(ProcessEntry {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        ticks: (11..15).filter_map(|at| fields.get(at)?.parse::<u64>().ok()).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_whatever_the_command_name_is() {
        let line = "7 (a) R 1 (b) S 3 5 5 0 -1 0 0 0 0 0 1 2 30 400 20 0 1 0";
        assert_eq!(parse_stat(7, line), Some(ProcessEntry { pid: 7, parent: 3, group: 5, state: 'S', ticks: 433 }));
        assert_eq!(parse_stat(7, "7 (a)"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_in_the_table() {
        let own = i32::try_from(std::process::id()).expect("ids are small");
        assert!(processes().iter().any(|entry| entry.pid == own && entry.group > 0));
    }
}
