//! Encodes answers in the layout of a guest's memory (the component model's canonical ABI).
//!
//! In: words and strings. Out: a data segment of at most [`BYTES`]. The answer begins at [`BASE`]; the strings and
//! lists to which it points follow.

/// The address of an answer.
pub(crate) const BASE: u32 = 16_384;
pub(crate) const BYTES: usize = 1_024;

pub(crate) struct Image {
    bytes: Vec<u8>,
    free: usize,
}

impl Image {
    /// Creates an image of zeros. The answer takes the first `size` bytes.
    pub(crate) fn new(size: usize) -> Image {
        Image { bytes: vec![0; BYTES], free: size.next_multiple_of(8) }
    }

    pub(crate) fn byte(&mut self, at: usize, value: u8) {
        self.bytes[at] = value;
    }

    pub(crate) fn word(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Reserves bytes and returns their address.
    pub(crate) fn room(&mut self, bytes: usize) -> usize {
        let at = self.free;
        self.free = (at + bytes).next_multiple_of(8);
        assert!(self.free <= BYTES, "the answer is too long");
        at
    }

    /// Writes a list at `at` whose elements begin at `elements`.
    pub(crate) fn list(&mut self, at: usize, elements: usize, count: u32) {
        self.word(at, BASE + elements as u32);
        self.word(at + 4, count);
    }

    pub(crate) fn text(&mut self, at: usize, text: &str) {
        let place = self.room(text.len());
        self.bytes[place..place + text.len()].copy_from_slice(text.as_bytes());
        self.list(at, place, text.len() as u32);
    }

    pub(crate) fn floats(&mut self, at: usize, values: &[f64]) {
        let place = self.room(values.len() * 8);
        for (index, value) in values.iter().enumerate() {
            self.bytes[place + index * 8..place + index * 8 + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.list(at, place, values.len() as u32);
    }

    /// Writes `column = 'text'` as an arena whose six lists begin at `at`.
    fn equality(&mut self, at: usize, column: &str, text: &str) {
        // The numbers of the operators `column`, `literal` and `eq` in the contract, and of the arguments of each.
        let ops: [(u8, u32); 3] = [(0, 0), (1, 0), (7, 2)];
        let nodes = self.room(3 * 16);
        for (index, (op, count)) in ops.into_iter().enumerate() {
            self.byte(nodes + index * 16, op);
            self.word(nodes + index * 16 + 8, count);
        }
        self.list(at, nodes, 3);
        let args = self.room(8);
        self.word(args + 4, 1);
        self.list(at + 8, args, 2);
        let columns = self.room(8);
        self.text(columns, column);
        self.list(at + 16, columns, 1);
        // `text` is the sixth case of a scalar. Its value is aligned to eight bytes.
        let literals = self.room(16);
        self.byte(literals, 5);
        self.text(literals + 8, text);
        self.list(at + 24, literals, 1);
        let roots = self.room(4);
        self.word(roots, 2);
        self.list(at + 40, roots, 1);
    }

    /// Returns the image as a data field of a module.
    pub(crate) fn data(&self) -> String {
        let bytes: String = self.bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(data (i32.const {BASE}) \"{bytes}\")\n")
    }
}

/// Returns `ok` with a verdict that permits rows with `orders.region = 'EU'` and has a mask, a warning and a note.
pub(crate) fn verdict() -> Image {
    let mut image = Image::new(80);
    // The case of the result is 0, the case of the decision is 1, and the obligations begin at 16.
    image.byte(8, 1);
    let filter = image.room(56);
    image.text(filter, "orders");
    image.equality(filter + 8, "region", "EU");
    image.list(16, filter, 1);
    let mask = image.room(28);
    image.text(mask, "orders");
    image.text(mask + 8, "status");
    // The mask `nullify`.
    image.byte(mask + 16, 1);
    image.list(24, mask, 1);
    let warning = image.room(8);
    image.text(warning, "only yours");
    image.list(52, warning, 1);
    let note = image.room(16);
    image.text(note, "rule");
    image.text(note + 8, "own region");
    image.list(60, note, 1);
    image
}

/// Returns `ok` with a plan of two requests for the first column: the number of rows, and the number of rows with
/// `region = 'EU'`.
pub(crate) fn plan() -> Image {
    const COUNT_WHERE: u8 = 12;
    let mut image = Image::new(60);
    let requests = image.room(2 * 32);
    image.byte(requests + 32 + 8, COUNT_WHERE);
    image.list(4, requests, 2);
    image.equality(12, "region", "EU");
    image
}

/// Returns `ok` with the scores of four points.
pub(crate) fn detection() -> Image {
    let mut image = Image::new(52);
    for (index, values) in [[0.0, 0.5, 1.0, 0.25], [1.0; 4], [2.0; 4], [0.0; 4], [3.0; 4]].iter().enumerate() {
        image.floats(4 + index * 8, values);
    }
    let anomalous = image.room(4);
    image.byte(anomalous + 2, 1);
    image.list(44, anomalous, 4);
    image
}

/// Returns the answer of `describe` for this id and version.
pub(crate) fn info(id: &str, version: &str) -> Image {
    let mut image = Image::new(48);
    image.text(0, id);
    image.text(8, version);
    image.text(16, "A guest");
    image
}
