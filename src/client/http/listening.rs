//! At which addresses of this machine a server listens, and which connections it has not closed, as the system's tables of
//! sockets show it (Linux, `/proc/net`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the server at a port of the loopback interface listens: `loopback`, or `every-address` if it accepts connections
/// from other machines as well. Nothing where the system does not show it.
pub(super) fn listens_at(port: u16) -> Option<&'static str> {
    class_of(tables()?.iter().flat_map(|table| table.lines().filter_map(listener)), port)
}

/// How many connections to a port of this machine the client has closed and the server has not. Nothing where the system
/// does not show it.
pub(super) fn half_closed(port: u16) -> Option<usize> {
    Some(tables()?.iter().flat_map(|table| table.lines()).filter(|line| is_half_closed(line, port)).count())
}

/// The tables, if the system has them.
fn tables() -> Option<[String; 2]> {
    // Without one of the tables the system has no such sockets.
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    cfg!(target_os = "linux").then(|| ["/proc/net/tcp", "/proc/net/tcp6"].map(read))
}

/// Whether a line of a table is about a connection to a port that only its client has closed.
fn is_half_closed(line: &str, port: u16) -> bool {
    const WAITS_FOR_CLOSE: &str = "08";
    let mut fields = line.split_whitespace().skip(1);
    let own = fields.next().and_then(|address| u16::from_str_radix(address.split_once(':')?.1, 16).ok());
    own == Some(port) && fields.nth(1) == Some(WAITS_FOR_CLOSE)
}

/// A connection to the loopback interface reaches the socket that listens there, and without one that of every address.
fn class_of(listeners: impl Iterator<Item = (IpAddr, u16)>, port: u16) -> Option<&'static str> {
    let addresses: Vec<IpAddr> =
        listeners.filter(|(_, own)| *own == port).map(|(address, _)| address.to_canonical()).collect();
    if addresses.iter().any(IpAddr::is_loopback) {
        return Some("loopback");
    }
    addresses.iter().any(IpAddr::is_unspecified).then_some("every-address")
}

/// The address and port of a line of a table, if the socket listens.
fn listener(line: &str) -> Option<(IpAddr, u16)> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    (fields.nth(1)? == LISTENS).then_some(())?;
    // Each word of an address is in the byte order of the machine.
    let words: Option<Vec<[u8; 4]>> = (0..address.len() / 8)
        .map(|at| Some(u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes()))
        .collect();
    let bytes = words?.concat();
    let address = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn only_sockets_that_listen_are_read() {
        let rows = [
            ("0: 0100007F:1F90 00000000:0000 0A 00000000:00000000", Some(("127.0.0.1", 8080))),
            ("1: 00000000:1F90 00000000:0000 0A 0", Some(("0.0.0.0", 8080))),
            ("2: 0100007F:1F90 0100007F:9C40 01 0", None),
            ("3: 00000000000000000000000000000000:0050 0:0 0A 0", Some(("::", 80))),
            ("4: 0000000000000000FFFF00000100007F:0050 0:0 0A 0", Some(("::ffff:127.0.0.1", 80))),
            ("5: 00000000000000000000000001000000:0050 0:0 0A 0", Some(("::1", 80))),
            ("  sl  local_address rem_address   st tx_queue", None),
            ("6: é0000000:0050 0:0 0A 0", None),
            ("", None),
        ];
        for (line, expected) in rows {
            let expected = expected.map(|(address, port)| (address.parse().expect("an address"), port));
            assert_eq!(listener(line), expected, "{line}");
        }
    }

    #[test]
    fn only_connections_that_the_client_has_closed_count_as_half_closed() {
        let row = |state: &str| format!("1: 0100007F:1F90 0100007F:9C40 {state} 00000000:00000000");
        assert!(is_half_closed(&row("08"), 8080));
        assert!(!is_half_closed(&row("01"), 8080) && !is_half_closed(&row("08"), 0x9C40));
        assert!(!is_half_closed("  sl  local_address rem_address   st tx_queue", 8080) && !is_half_closed("", 0));
    }

    #[test]
    fn a_socket_of_the_loopback_interface_comes_before_one_of_every_address() {
        let class = |addresses: &[&str]| {
            let listeners = addresses.iter().map(|address| (address.parse().expect("an address"), 80));
            class_of(listeners, 80)
        };
        assert_eq!(class(&["127.0.0.1"]), Some("loopback"));
        assert_eq!(class(&["::ffff:127.0.0.1"]), Some("loopback"));
        assert_eq!(class(&["0.0.0.0"]), Some("every-address"));
        assert_eq!(class(&["::"]), Some("every-address"));
        assert_eq!(class(&["::", "127.0.0.1"]), Some("loopback"));
        assert_eq!(class(&["192.0.2.1"]), None);
        assert_eq!(class_of([(IpAddr::from([0, 0, 0, 0]), 81)].into_iter(), 80), None);
    }
}
