//! Applies random edits to the example project and requests every feature after each edit. Nothing may panic.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "session/disk.rs"]
mod disk;

use std::path::Path;
use std::sync::Arc;

use lsp_types::Position;
use terrane_language_server::{
    Format, Projects as _, Workspace, complete, definition, document_symbols, hover, prepare_rename, references,
    rename, workspace_symbols,
};

const EDITS: usize = 400;

/// Pieces that change the structure of YAML, SQL and Jinja.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\r\n",
    "\t",
    "{{ ",
    " }}",
    "{flights.",
    "#",
    "&a ",
    "*a",
    "|\n",
    "ü",
    "😀",
    "\u{0}",
    "name: count",
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// Returns an offset between two characters.
    fn offset(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

fn edit(text: &str, random: &mut Random) -> String {
    let (a, b) = (random.offset(text), random.offset(text));
    let (from, to) = (a.min(b), a.max(b));
    let mut text = text.to_owned();
    match random.below(5) {
        0 => text.replace_range(from..to.min(from + 40).max(from), ""),
        1 => text.truncate(from),
        2 => {
            let copy = text[from..to].to_owned();
            text.insert_str(a, &copy);
        }
        _ => text.insert_str(from, PIECES[random.below(PIECES.len())]),
    }
    if !text.is_char_boundary(0) || text.len() > 200_000 { String::new() } else { text }
}

#[test]
fn random_edits_never_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let mut workspace = Workspace::new(disk::Disk.open(&root).unwrap());
    let files: Vec<Arc<str>> = [
        "service_project.yml",
        "cubes/flights.yml",
        "cubes/weather.yml",
        "metrics/metrics.yml",
        "models/weather_hourly.sql",
        "sources/raw.yml",
        "tests/joins.yml",
        "policies/new.yml",
    ]
    .map(Arc::from)
    .to_vec();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for step in 0..EDITS {
        let file = &files[random.below(files.len())];
        let text = workspace.text(file).map(|text| text.to_string()).unwrap_or_default();
        let changed = edit(&text, &mut random);
        workspace.change(file, &changed, None);
        let lines = changed.matches('\n').count() + 2;
        for _ in 0..4 {
            let position = Position { line: random.below(lines) as u32, character: random.below(80) as u32 };
            complete(&mut workspace, file, position, Format::PlainText);
            hover(&mut workspace, file, position, Format::Markdown);
            definition(&mut workspace, file, position);
            references(&mut workspace, file, position, true);
            _ = prepare_rename(&mut workspace, file, position);
            _ = rename(&mut workspace, file, position, "fresh_name");
        }
        document_symbols(&mut workspace, file);
        workspace_symbols(&mut workspace, "a");
        workspace.diagnostics();
        // The project is restored regularly, so that most edits are made to a file that is nearly valid.
        if step % 7 == 0 {
            files.iter().for_each(|file| workspace.close(file));
        }
    }
}
