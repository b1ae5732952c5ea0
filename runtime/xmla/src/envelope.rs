//! Envelopes of responses: the XML before and after the rows, and faults.
//!
//! In: the command that is answered, its session and its parts. Out: the bytes of a SOAP 1.1 message.

use crate::fault::Fault;
use crate::request::Content;
use crate::schema::{ROWSET, ResultField, write_schema};
use crate::xml::{write_element, write_text};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const OPEN: &str = "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\">";
const NAMESPACE: &str = "urn:schemas-microsoft-com:xml-analysis";
const EMPTY: &str = "urn:schemas-microsoft-com:xml-analysis:empty";
const RESULTS: &str = "http://schemas.microsoft.com/analysisservices/2003/xmla-multipleresults";
const MESSAGES: &str = "<Messages xmlns=\"urn:schemas-microsoft-com:xml-analysis:exception\">";

/// The number of every warning. Its upper half marks a warning of Analysis Services.
const WARNING: u32 = 0x410E_0001;

/// The command that a response answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Discover,
    Execute,
}

impl Answered {
    fn element(self) -> &'static str {
        match self {
            Answered::Discover => "DiscoverResponse",
            Answered::Execute => "ExecuteResponse",
        }
    }
}

/// Returns the beginning of an envelope, up to its results.
pub fn head(answered: Answered, session: Option<&str>) -> Vec<u8> {
    let mut out = open(session);
    append(&format!("<soap:Body><{} xmlns=\"{NAMESPACE}\"><return>", answered.element()), &mut out);
    out
}

/// Appends the end of an envelope.
pub fn write_foot(answered: Answered, out: &mut Vec<u8>) {
    append(&format!("</return></{}></soap:Body></soap:Envelope>", answered.element()), out);
}

/// Appends the beginning of a list of several results.
pub fn write_results_head(out: &mut Vec<u8>) {
    append(&format!("<results xmlns=\"{RESULTS}\">"), out);
}

/// Appends the end of a list of several results.
pub fn write_results_foot(out: &mut Vec<u8>) {
    append("</results>", out);
}

/// Appends the beginning of a rowset. The schema is included if `content` requests it.
pub fn write_rowset_head(fields: &[ResultField], content: Content, out: &mut Vec<u8>) {
    let namespace = if content == Content::None { EMPTY } else { ROWSET };
    append(
        &format!(
            "<root xmlns=\"{namespace}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\">"
        ),
        out,
    );
    if matches!(content, Content::Schema | Content::SchemaData) {
        write_schema(fields, out);
    }
}

/// Appends the end of a rowset.
pub fn write_rowset_foot(out: &mut Vec<u8>) {
    append("</root>", out);
}

/// Returns the response to a command without a result.
pub fn empty(answered: Answered, session: Option<&str>) -> Vec<u8> {
    let mut out = head(answered, session);
    append(&format!("<root xmlns=\"{EMPTY}\"/>"), &mut out);
    write_foot(answered, &mut out);
    out
}

/// Returns the response with a fault. `id` identifies the request in the log.
pub fn fault(fault: &Fault, id: &str) -> Vec<u8> {
    let mut out = open(None);
    append("<soap:Body><soap:Fault>", &mut out);
    write_element("faultcode", &fault.code.name(), &mut out);
    write_element("faultstring", &fault.message, &mut out);
    append("<detail>", &mut out);
    write_error(fault, &mut out);
    write_element("CorrelationId", id, &mut out);
    append("</detail></soap:Fault></soap:Body></soap:Envelope>", &mut out);
    out
}

/// Appends the warnings of a result, which follow its rows. Appends nothing if there are none.
pub fn write_warnings(warnings: &[String], out: &mut Vec<u8>) {
    if warnings.is_empty() {
        return;
    }
    append(MESSAGES, out);
    for warning in warnings {
        append(&format!("<Warning WarningCode=\"{WARNING}\" Description=\""), out);
        write_text(warning, out);
        append("\" Source=\"Terrane\" HelpFile=\"\"/>", out);
    }
    append("</Messages>", out);
}

fn write_error(fault: &Fault, out: &mut Vec<u8>) {
    append(&format!("<Error ErrorCode=\"{}\" Description=\"", fault.code.number()), out);
    write_text(&fault.message, out);
    append("\" Source=\"Terrane\" HelpFile=\"\"/>", out);
}

fn open(session: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(4_096);
    append(DECLARATION, &mut out);
    append(OPEN, &mut out);
    if let Some(session) = session {
        append(&format!("<soap:Header><Session xmlns=\"{NAMESPACE}\" SessionId=\""), &mut out);
        write_text(session, &mut out);
        append("\"/></soap:Header>", &mut out);
    }
    out
}

fn append(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::fault::FaultCode;

    #[test]
    fn fault_has_its_code_and_message() {
        let found = fault(&Fault::new(FaultCode::InvalidStatement, "a < b & \"c\""), "id-1");
        let root = Element::read(&found).unwrap();
        let fault = root.child("Body").unwrap().child("Fault").unwrap();
        assert_eq!(fault.child("faultcode").unwrap().text, "XMLAnalysisError.0xc10e0002");
        assert_eq!(fault.child("faultstring").unwrap().text, "a < b & \"c\"");
        let detail = fault.child("detail").unwrap();
        let error = detail.child("Error").unwrap();
        assert_eq!(error.attribute("ErrorCode"), Some("3238920194"));
        assert_eq!(error.attribute("Description"), Some("a < b & \"c\""));
        assert_eq!(detail.child("CorrelationId").unwrap().text, "id-1");
    }

    #[test]
    fn empty_result_has_its_session() {
        let root = Element::read(&empty(Answered::Execute, Some("s\"1"))).unwrap();
        assert_eq!(root.child("Header").unwrap().child("Session").unwrap().attribute("SessionId"), Some("s\"1"));
        let result = root.child("Body").unwrap().child("ExecuteResponse").unwrap().child("return").unwrap();
        assert_eq!(result.child("root").unwrap().attribute("xmlns"), Some(EMPTY));
    }
}
