//! The description of the XMLA route in `/openapi.json`.

use crate::openapi::{Compression, Content, Doc, ResponseDoc};

pub(super) static POST: Doc = Doc {
    id: "xmla",
    tag: "dax",
    summary: "Answer an envelope of XML for Analysis (`text/xml`) with Discover or Execute",
    parameters: &[],
    // The body, an envelope in `text/xml`, is not described: generators of clients cannot use it, and warn about its
    // type.
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "an envelope of SOAP 1.1 with a rowset, the rows of a DAX query, or a fault",
        content: &[Content::Text("text/xml")],
        compression: Compression::Accepted,
    }],
    errors: &[],
    detail_errors: &[],
};
