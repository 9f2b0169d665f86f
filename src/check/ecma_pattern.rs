//! The syntax of regular expressions in JSON Schema, which is that of ECMA-262.
//!
//! Reports what no JavaScript engine compiles, and escapes that another dialect gives a meaning and ECMA-262 none. What
//! only the flag `u` forbids and every dialect reads alike, such as `\-` or `\@`, is accepted, and so are the
//! modifiers of ES2025 (`(?i:...)`). Names of properties, of groups and of references to them are not checked.

/// What of a pattern is no ECMA-262, as a phrase that names the construct; `None` if nothing is.
pub(super) fn problem(pattern: &str) -> Option<String> {
    let mut reader = Reader { rest: pattern, open_groups: 0, atom: Atom::None };
    while let Some(character) = reader.next() {
        if let Some(problem) = reader.read(character) {
            return Some(problem);
        }
    }
    (reader.open_groups > 0).then(|| "a group that is not closed".to_owned())
}

/// What stands directly before the next character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// Nothing: the start of the pattern, of a group or of an alternative.
    None,
    /// `^` or `$`, which cannot be repeated.
    Anchor,
    /// Something that can be repeated.
    Repeatable,
    /// A quantifier; whether it may still be made lazy by a question mark.
    Quantifier { may_be_lazy: bool },
}

struct Reader<'p> {
    rest: &'p str,
    open_groups: usize,
    atom: Atom,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Skips a text if it is next.
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads what begins with a character outside of any class.
    fn read(&mut self, character: char) -> Option<String> {
        match character {
            '\\' => {
                self.atom = Atom::Repeatable;
                self.read_escape()
            }
            '[' => {
                self.atom = Atom::Repeatable;
                self.read_class()
            }
            '(' => {
                self.open_groups += 1;
                self.atom = Atom::None;
                if self.skip("?") { self.read_group_kind() } else { None }
            }
            ')' if self.open_groups == 0 => Some("a `)` without a group".to_owned()),
            ')' => {
                self.open_groups -= 1;
                self.atom = Atom::Repeatable;
                None
            }
            '|' => {
                self.atom = Atom::None;
                None
            }
            '^' | '$' => {
                self.atom = Atom::Anchor;
                None
            }
            '*' | '+' | '?' => self.read_quantifier(&character.to_string(), character),
            '{' => self.read_braces(),
            _ => {
                self.atom = Atom::Repeatable;
                None
            }
        }
    }

    fn read_quantifier(&mut self, text: &str, first: char) -> Option<String> {
        match self.atom {
            Atom::Quantifier { may_be_lazy: true } if first == '?' => {
                self.atom = Atom::Quantifier { may_be_lazy: false };
                None
            }
            Atom::Quantifier { may_be_lazy: true } if first == '+' => {
                Some("a possessive quantifier (a `+` after a quantifier), which ECMA-262 does not have".to_owned())
            }
            Atom::None | Atom::Anchor | Atom::Quantifier { .. } => {
                Some(format!("the quantifier `{text}`, with nothing before it to repeat"))
            }
            Atom::Repeatable => {
                self.atom = Atom::Quantifier { may_be_lazy: true };
                None
            }
        }
    }

    /// Reads what follows an opening brace. Braces that are no quantifier are text, except those that another dialect
    /// reads as one.
    fn read_braces(&mut self) -> Option<String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let inner = self.rest.split_once('}').map(|(inner, _)| inner);
        let (least, most) = inner.map_or(("", None), |inner| match inner.split_once(',') {
            Some((least, most)) => (least, Some(most)),
            None => (inner, None),
        });
        let text = format!("{{{}}}", inner.unwrap_or_default());
        if least.is_empty() && most.is_some_and(is_number) {
            return Some(format!("`{text}`, a quantifier without its first number, which ECMA-262 does not have"));
        }
        if !is_number(least) || !most.is_none_or(|most| most.is_empty() || is_number(most)) {
            self.atom = Atom::Repeatable;
            return None;
        }
        let value = |digits: &str| digits.trim_start_matches('0').to_owned();
        let is_less = |a: &str, b: &str| (a.len(), a) < (b.len(), b);
        if most.is_some_and(|most| !most.is_empty() && is_less(&value(most), &value(least))) {
            return Some(format!("the quantifier `{text}`, whose numbers are out of order"));
        }
        self.skip(&text[1..]);
        self.read_quantifier(&text, '{')
    }

    /// Reads what follows `(?`.
    fn read_group_kind(&mut self) -> Option<String> {
        if ["<=", "<!", ":", "=", "!"].iter().any(|kind| self.skip(kind)) {
            return None;
        }
        let has_name = |rest: &str| rest.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$');
        if self.rest.strip_prefix('<').is_some_and(has_name) {
            self.skip("<");
            return None;
        }
        let flags: String = self.rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-').collect();
        let after = self.rest[flags.len()..].chars().next();
        if after == Some(':') && flags.chars().all(|flag| matches!(flag, 'i' | 'm' | 's' | '-')) {
            self.rest = &self.rest[flags.len() + 1..];
            return None;
        }
        let construct = match self.rest.chars().next() {
            Some('P') if self.rest.starts_with("P<") => "`(?P<`, a named group; ECMA-262 writes it `(?<`".to_owned(),
            Some('P') => "`(?P`, a reference to a group; ECMA-262 writes it `\\k<name>`".to_owned(),
            Some('\'') => "`(?'`, a named group; ECMA-262 writes it `(?<`".to_owned(),
            Some('>') => "`(?>`, an atomic group, which ECMA-262 does not have".to_owned(),
            Some('#') => "`(?#`, a comment, which ECMA-262 does not have".to_owned(),
            Some('(') => "`(?(`, a condition, which ECMA-262 does not have".to_owned(),
            Some('|') => "`(?|`, a group that resets numbers, which ECMA-262 does not have".to_owned(),
            _ if !flags.is_empty() && after == Some(')') => {
                format!("`(?{flags})`, flags for the rest of the pattern, which ECMA-262 does not have")
            }
            _ if !flags.is_empty() && after == Some(':') => {
                format!("`(?{flags}:`, flags of which ECMA-262 has only i, m and s")
            }
            Some(other) => format!("`(?{other}`, which begins no group of ECMA-262"),
            None => "a group that is not closed".to_owned(),
        };
        Some(construct)
    }

    /// Reads what follows a backslash.
    fn read_escape(&mut self) -> Option<String> {
        let Some(escaped) = self.next() else {
            return Some("a backslash at its end, which escapes nothing".to_owned());
        };
        let next = self.rest.chars().next();
        match escaped {
            'p' | 'P' if next != Some('{') => {
                Some(format!("`\\{escaped}` without braces; ECMA-262 writes a property `\\{escaped}{{L}}`"))
            }
            'x' if next == Some('{') => {
                Some("`\\x{`, a character by its number; ECMA-262 writes it `\\u0041`".to_owned())
            }
            'A' | 'Z' | 'z' => Some(format!(
                "`\\{escaped}`, the start or end of the text in other dialects; ECMA-262 writes it `^` or `$`"
            )),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'f' | 'n' | 'r' | 't' | 'v' | 'c' | 'x' | 'u' | 'k'
            | 'p' | 'P' => {
                self.skip_braces(escaped);
                None
            }
            _ if escaped.is_ascii_alphabetic() => Some(format!("`\\{escaped}`, an escape that ECMA-262 does not have")),
            _ => None,
        }
    }

    /// Skips the braces that belong to an escape, such as those of `\p{L}` and `\u{1F600}`.
    fn skip_braces(&mut self, escaped: char) {
        if matches!(escaped, 'p' | 'P' | 'u')
            && self.rest.starts_with('{')
            && let Some((_, rest)) = self.rest.split_once('}')
        {
            self.rest = rest;
        }
    }

    /// Reads a class to its end.
    fn read_class(&mut self) -> Option<String> {
        self.skip("^");
        // A bracket at the start belongs to the class in most dialects, but ends it in that of ECMA-262.
        while let Some(character) = self.next() {
            match character {
                ']' => return None,
                '\\' => {
                    let problem = self.read_escape();
                    if problem.is_some() {
                        return problem;
                    }
                }
                _ => {}
            }
        }
        Some("a class `[` that is not closed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_javascript_engine_compiles_is_accepted() {
        for pattern in [
            "",
            "^a+$",
            "(?<=a)b(?<!c)",
            "(?<name>a)\\k<name>",
            "(?<_>a)(?<$>b)(?<é>c)",
            "\\p{Letter}+\\P{L}{2}",
            "[\\w-]+",
            "^(?!x)(?=y)*",
            "\\/\\-\\@\\.\\ ",
            "\\u0041\\u{1F600}\\x41\\cA\\0",
            "{",
            "a{b}{,}{x,1}",
            "a{2}b{2,}c{2,3}?d{02,10}",
            "a*?b+?c??",
            "(?i:a)(?-s:b)(?im-s:c)",
            "[[:alpha:]]",
            "[(?P<]{3}[*+]",
            "[^]]?",
            "()|",
            "^$|\\b",
        ] {
            assert_eq!(problem(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_no_javascript_engine_compiles_is_named() {
        for (pattern, construct) in [
            ("^(?P<id>[0-9a-f]{8})$", "`(?P<`"),
            ("(?<a>x)(?P=a)", "`(?P`"),
            ("(?P>a)", "`(?P`"),
            ("(?'a'x)", "`(?'`"),
            ("a(?#b)", "`(?#`"),
            ("(?i)abc", "`(?i)`"),
            ("(?i-s)abc", "`(?i-s)`"),
            ("(?x: a )", "`(?x:`"),
            ("(?>a)", "`(?>`"),
            ("(?|a)", "`(?|`"),
            ("(a)?(?(1)b)", "`(?(`"),
            ("(?1)", "`(?1`"),
            ("(?<1>a)", "`(?<`"),
            ("a++", "possessive"),
            ("a{2}+", "possessive"),
            ("a**", "`*`"),
            ("a{,3}", "`{,3}`"),
            ("a{3,2}", "`{3,2}`"),
            ("{2}", "`{2}`"),
            ("^*", "`*`"),
            ("*.txt", "`*`"),
            ("a|*", "`*`"),
            ("\\Aabc\\Z", "`\\A`"),
            ("abc\\z", "`\\z`"),
            ("\\h+", "`\\h`"),
            ("\\Qa.b\\E", "`\\Q`"),
            ("[\\h]", "`\\h`"),
            ("\\pL", "`\\p`"),
            ("\\x{41}", "`\\x{`"),
            ("(", "not closed"),
            ("(?", "not closed"),
            (")", "`)`"),
            ("[a-", "`[`"),
            ("a\\", "backslash"),
        ] {
            let found = problem(pattern).unwrap_or_default();
            assert!(found.contains(construct), "{pattern}: {found}");
        }
    }
}
