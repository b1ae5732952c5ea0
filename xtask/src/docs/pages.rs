//! Copies the pages of the site, and the files that they link to, into one folder.
//!
//! In: the clone and its index of pages. Out: a folder in which each file has its path from the root of the clone, with
//! an index of these paths. Not here: checking the fragments of links, which `site` does later.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

const INDEX: &str = "SUMMARY.md";

/// Copies all pages of the index in `folder`, which is a path from `root`. Returns the number of pages.
pub(super) fn copy(root: &Path, folder: &Path, destination: &Path) -> Result<usize> {
    let index = fs::read_to_string(root.join(folder).join(INDEX)).with_context(|| format!("reading {INDEX}"))?;
    let mut pages = BTreeSet::new();
    let index = rewrite(&index, |target| {
        let page = from_root(folder, target).context("a page is outside of the clone")?;
        pages.insert(page.clone());
        Ok(Some(page.display().to_string()))
    })?;
    write(&destination.join(INDEX), &index)?;
    for page in &pages {
        copy_page(root, page, &pages, destination).with_context(|| format!("page {}", page.display()))?;
    }
    Ok(pages.len())
}

/// Copies a page and the files to which it links.
fn copy_page(root: &Path, page: &Path, pages: &BTreeSet<PathBuf>, destination: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(page))?;
    let parent = page.parent().unwrap_or(Path::new(""));
    let text = rewrite(&text, |target| {
        let (path, fragment) = target.split_once('#').map_or((target, None), |(path, name)| (path, Some(name)));
        if path.is_empty() {
            return Ok(None);
        }
        let file = from_root(parent, path).with_context(|| format!("{target} is outside of the clone"))?;
        let readme = file.join("README.md");
        if root.join(&file).is_dir() && pages.contains(&readme) {
            return Ok(Some(format!("{}/README.md{}", path.trim_end_matches('/'), suffix(fragment))));
        }
        if !pages.contains(&file) {
            copy_linked(root, &file, destination)?;
        }
        Ok(None)
    })?;
    write(&destination.join(page), &text)
}

/// Copies a file that is not a page, such as a source file.
fn copy_linked(root: &Path, file: &Path, destination: &Path) -> Result<()> {
    if !root.join(file).is_file() {
        bail!("{} is not a file; link to a page or a file in it", file.display());
    }
    if file.extension().is_some_and(|extension| extension == "md") {
        bail!("{} is not a page; add it to {INDEX}", file.display());
    }
    let text = fs::read(root.join(file))?;
    fs::create_dir_all(destination.join(file).parent().unwrap_or(destination))?;
    Ok(fs::write(destination.join(file), text)?)
}

fn suffix(fragment: Option<&str>) -> String {
    fragment.map(|name| format!("#{name}")).unwrap_or_default()
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Returns the normalized path of a link in a file in `folder`; `None` if the link leads out of the clone.
fn from_root(folder: &Path, target: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in folder.join(target).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path)
}

/// Replaces the targets of links outside code blocks. `replace` is not called for links to other machines.
fn rewrite(text: &str, mut replace: impl FnMut(&str) -> Result<Option<String>>) -> Result<String> {
    let mut output = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let mut rest = line;
        while let Some(at) = rest.find("](").filter(|_| !is_code) {
            let (before, after) = rest.split_at(at + 2);
            let end = after.find(')').unwrap_or(0);
            output.push_str(before);
            let target = &after[..end];
            let is_local = !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:");
            let replaced = if is_local { replace(target)? } else { None };
            output.push_str(replaced.as_deref().unwrap_or(target));
            rest = &after[end..];
        }
        output.push_str(rest);
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a clone with two pages, a source file and a document that is not a page.
    fn clone(page: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("runtime/docs/SUMMARY.md", "- [A](a.md)\n- [B](../../b/README.md)\n"),
            ("runtime/docs/a.md", page),
            ("b/README.md", "# B\n"),
            ("b/code.rs", "fn main() {}\n"),
            ("b/other.md", "# Other\n"),
        ];
        for (file, text) in files {
            write(&root.path().join(file), text).unwrap();
        }
        root
    }

    fn copied(page: &str) -> Result<String> {
        let root = clone(page);
        let book = root.path().join("book");
        assert_eq!(copy(root.path(), Path::new("runtime/docs"), &book)?, 2);
        let index = fs::read_to_string(book.join("SUMMARY.md"))?;
        assert_eq!(index, "- [A](runtime/docs/a.md)\n- [B](b/README.md)\n");
        assert_eq!(page.contains("code.rs)"), book.join("b/code.rs").is_file());
        Ok(fs::read_to_string(book.join("runtime/docs/a.md"))?)
    }

    #[test]
    fn links_to_folders_become_links_to_their_pages() {
        assert_eq!(
            copied("[B](../../b#b) [B](../../b/)\n").unwrap(),
            "[B](../../b/README.md#b) [B](../../b/README.md)\n"
        );
    }

    #[test]
    fn linked_files_are_copied() {
        let page = "[code](../../b/code.rs), [x](https://x.test) and [here](#a)\n```\n[no](link)\n```\n";
        assert_eq!(copied(page).unwrap(), page);
    }

    #[test]
    fn links_to_other_documents_and_missing_files_are_rejected() {
        for (page, reason) in [
            ("[other](../../b/other.md)", "add it to SUMMARY.md"),
            ("[gone](gone.rs)", "is not a file"),
            ("[out](../../../x.md)", "outside of the clone"),
        ] {
            let error = format!("{:#}", copied(page).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }
}
