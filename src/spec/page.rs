//! The pages of the book about requirements and cases.
//!
//! Owns where a page is in the book, and under which address the book is published. What a page says is up to the
//! command line.

use super::Requirement;

/// The address under which the book is published, set when the program is built; none in a build from a checkout.
const BOOK: Option<&str> = option_env!("MCP_CONFORMANCE_BOOK");

/// The page of a requirement in the book, with its anchor.
///
/// # Examples
///
/// ```
/// use mcp_conformance::spec::{Catalogue, requirement_page};
///
/// let requirement = Catalogue::embedded().get("content-image").expect("it is in the catalogue");
/// assert_eq!(requirement_page(requirement), "reference/requirements/content.html#content-image");
/// ```
#[must_use]
pub fn requirement_page(requirement: &Requirement) -> String {
    format!("reference/requirements/{}.html#{}", requirement.area, requirement.id)
}

/// The page of a built-in case in the book, with its anchor.
///
/// # Examples
///
/// ```
/// use mcp_conformance::spec::case_page;
///
/// assert_eq!(case_page("tools/call/unknown-tool"), "reference/cases/tools.html#tools/call/unknown-tool");
/// ```
#[must_use]
pub fn case_page(case: &str) -> String {
    let area = case.split('/').next().unwrap_or(case);
    format!("reference/cases/{area}.html#{case}")
}

/// The address of a page of the book, if this build knows where the book is published.
///
/// # Examples
///
/// ```
/// use mcp_conformance::spec::{book_address, case_page};
///
/// let page = case_page("tools/call/unknown-tool");
/// assert!(book_address(&page).is_none_or(|address| address.ends_with(&page)));
/// ```
#[must_use]
pub fn book_address(page: &str) -> Option<String> {
    address_below(BOOK, page)
}

fn address_below(book: Option<&str>, page: &str) -> Option<String> {
    let book = book?.trim().trim_end_matches('/');
    // A workflow that has no address sets an empty one.
    (!book.is_empty()).then(|| format!("{book}/{page}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_an_address_if_the_book_has_one() {
        let address = |book| address_below(book, "reference/cases/tools.html");
        assert_eq!(address(None), None);
        assert_eq!(address(Some(" ")), None);
        let expected = Some("https://docs.example/book/reference/cases/tools.html".to_owned());
        assert_eq!(address(Some("https://docs.example/book")), expected);
        assert_eq!(address(Some("https://docs.example/book/")), expected);
    }
}
