//! Finds broken links of a static site.
//!
//! In: a folder of HTML files. Out: each link whose file or fragment does not exist. Not here: an HTML parser, because
//! mdBook quotes all attributes, and links to other machines, because a check must not need a network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The links and the fragments of one page.
struct Page {
    links: Vec<String>,
    ids: BTreeSet<String>,
}

/// Returns the broken links of all pages below a folder, each with its page.
pub(super) fn faults(site: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for file in files(site)? {
        if file.extension().is_some_and(|extension| extension == "html") {
            let html = fs::read_to_string(&file)?;
            pages.insert(file, Page { links: links(&html), ids: attributes(&html, "id").collect() });
        }
    }
    let mut faults = Vec::new();
    for (file, page) in &pages {
        let name = file.strip_prefix(site).unwrap_or(file).display();
        let is_fault = |link: &&String| !leads_somewhere(file, link, &pages);
        faults.extend(page.links.iter().filter(is_fault).map(|link| format!("{name}: {link}")));
    }
    Ok(faults)
}

fn leads_somewhere(file: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> bool {
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, name)| (path, Some(name)));
    let target = if path.is_empty() { Ok(file.to_path_buf()) } else { parent(file).join(path).canonicalize() };
    let Ok(target) = target else { return false };
    match (fragment.filter(|name| !name.is_empty()), pages.get(&target)) {
        (Some(name), Some(page)) => page.ids.contains(name),
        (Some(_), None) => false,
        (None, _) => target.is_file(),
    }
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

/// Returns the links of a page that lead to the site itself.
fn links(html: &str) -> Vec<String> {
    let is_local = |link: &String| !["://", "mailto:", "data:"].iter().any(|other| link.contains(other));
    attributes(html, "href").chain(attributes(html, "src")).filter(is_local).collect()
}

/// Returns the values of an attribute in the HTML outside scripts.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let markup = html.split("<script").map(|part| part.split_once("</script>").map_or(part, |(_, rest)| rest));
    markup.flat_map(move |part| {
        let start = format!(" {name}=\"");
        let values = part.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
        values.map(|value| value.replace("&amp;", "&")).collect::<Vec<_>>()
    })
}

/// Returns all files below a folder, as absolute paths.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder.canonicalize().with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(page: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("index.html"), page).unwrap();
        fs::write(folder.path().join("sub/other.html"), "<h1 id=\"title\"><a href=\"../index.html\">up</a></h1>")
            .unwrap();
        fs::write(folder.path().join("sub/code.rs"), "fn main() {}").unwrap();
        faults(&folder.path().canonicalize().unwrap()).unwrap()
    }

    #[test]
    fn valid_links_have_no_finding() {
        let page = "<a href=\"sub/other.html#title\" id=\"here\"></a><a href=\"#here\"></a><a href=\"sub/code.rs\"></a>\
                    <a href=\"https://x.test/gone\"></a><script>x = '<a href=\"gone.html\">'</script><img src=\"sub/code.rs\">";
        assert_eq!(site(page), [""; 0]);
    }

    #[test]
    fn broken_links_are_found() {
        for link in ["gone.html", "sub", "#gone", "sub/other.html#gone", "sub/code.rs#line"] {
            assert_eq!(site(&format!("<a href=\"{link}\"></a>")), [format!("index.html: {link}")]);
        }
    }
}
