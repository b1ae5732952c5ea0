//! The description of the XMLA route in `/openapi.json`.

use crate::openapi::{Compression, Content, Doc, ResponseDoc};

pub(super) static POST: Doc = Doc {
    id: "xmla",
    tag: "dax",
    summary: "Execute a Discover or Execute request of XML for Analysis (`text/xml`)",
    parameters: &[],
    // The body, an envelope in `text/xml`, is not described: generators of clients cannot use it, and warn about its
    // type.
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "a SOAP 1.1 envelope with a rowset, the rows of a DAX query, or a fault",
        content: &[Content::Text("text/xml")],
        compression: Compression::Accepted,
    }],
    errors: &[],
    detail_errors: &[],
};
