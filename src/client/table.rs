//! The system's table of processes, where it shows one (Linux, in `/proc`).

/// A process, as the table shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// A letter: `R` runs, `D` waits for a disk, `Z` has ended and was not waited for.
    pub(super) state: char,
    /// Processor time, that of children that have ended included, in ticks of the system's clock.
    pub(super) ticks: u64,
}

/// The processes that there are; none where the system shows no table.
pub(super) fn rows() -> Vec<Row> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let Ok(names) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = names.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One that has ended meanwhile is left out.
    numbers.filter_map(|pid| row(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Reads a line of the table.
fn row(pid: i32, stat: &str) -> Option<Row> {
    // After the name of the command, which stands in brackets and may hold anything: the state, the parent, the
    // group; the four times stand from the twelfth on.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some(Row {
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
    fn a_line_is_read_whatever_the_command_is_called() {
        let line = "7 (a) R 1 (b) S 3 5 5 0 -1 0 0 0 0 0 1 2 30 400 20 0 1 0";
        assert_eq!(row(7, line), Some(Row { pid: 7, parent: 3, group: 5, state: 'S', ticks: 433 }));
        assert_eq!(row(7, "7 (a)"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_among_them() {
        let own = i32::try_from(std::process::id()).expect("ids are small");
        assert!(rows().iter().any(|row| row.pid == own && row.group > 0));
    }
}
