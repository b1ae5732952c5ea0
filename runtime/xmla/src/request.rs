//! Requests of XMLA: Discover and Execute in a SOAP envelope.
//!
//! In: the bytes of an envelope. Out: a typed [`Request`], or the [`Fault`] to send as the answer. Unknown properties
//! and elements are ignored, as the specification of XMLA demands. Unknown restrictions are passed on to their rowset.
//! Not here: the meaning of sessions and statements, which are passed on unchanged.

use crate::element::Element;
use crate::fault::{Fault, FaultCode};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub session: SessionHeader,
    pub command: Command,
}

/// The session that the header of a request names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionHeader {
    #[default]
    None,
    Begin,
    Use(String),
    End(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Discover(Discover),
    Execute(Execute),
}

/// A request for the rows of a rowset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discover {
    pub rowset: String,
    pub restrictions: Vec<Restriction>,
    pub properties: Properties,
}

/// A restriction of a column. A row passes if it has one of the values. Without values, every row passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    pub column: String,
    pub values: Vec<String>,
}

/// A request to run a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Execute {
    /// The statement. It is empty if the request runs nothing.
    pub statement: String,
    pub parameters: Vec<Parameter>,
    pub properties: Properties,
}

/// A value for the parameter `@name` of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name without the `@`.
    pub name: String,
    /// The local name of the type, such as `int`. It is empty if the request contains none.
    pub ty: String,
    /// The text of the value. `None` for null.
    pub value: Option<String>,
}

/// The properties that change a result. Results are always tabular; `Format` and `AxisFormat` are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// The name of the catalog. `None` if the request contains none.
    pub catalog: Option<String>,
    pub content: Content,
    /// The time limit in seconds. `None` for the server's limit.
    pub timeout: Option<u64>,
    /// The index of the first row to return. `None` to start at the first row of the result.
    pub begin_range: Option<u64>,
    /// The index of the last row to return. `None` to end at the last row of the result.
    pub end_range: Option<u64>,
}

/// The parts of a result that are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    None,
    Schema,
    Data,
    #[default]
    SchemaData,
}

/// Headers that are ignored even if they have `mustUnderstand`, because their content does not change an answer.
const IGNORED_HEADERS: [&str; 5] =
    ["ProtocolCapabilities", "Version", "NamespaceCompatibility", "BeginGetSessionToken", "Security"];

impl Request {
    /// Parses an envelope.
    ///
    /// # Errors
    /// Returns the fault to send as the answer.
    pub fn read(bytes: &[u8]) -> Result<Request, Fault> {
        let envelope = |message: String| Fault::new(FaultCode::InvalidEnvelope, message);
        let root = Element::read(bytes).map_err(|error| envelope(error.to_string()))?;
        if root.name != "Envelope" {
            return Err(envelope(format!("expected a SOAP `Envelope`, found `{}`", root.name)));
        }
        let session = root.child("Header").map(session).transpose()?.unwrap_or_default();
        let body = root.child("Body").ok_or_else(|| envelope("the envelope has no `Body`".to_owned()))?;
        let command = match body.children.as_slice() {
            [command] if command.name == "Discover" => Command::Discover(discover(command)?),
            [command] if command.name == "Execute" => Command::Execute(execute(command)?),
            [other] => return Err(envelope(format!("expected `Discover` or `Execute`, found `{}`", other.name))),
            _ => return Err(envelope("expected one element in `Body`: `Discover` or `Execute`".to_owned())),
        };
        Ok(Request { session, command })
    }
}

fn session(header: &Element) -> Result<SessionHeader, Fault> {
    let mut session = SessionHeader::None;
    for entry in &header.children {
        let id = || {
            let id = entry.attribute("SessionId").filter(|id| !id.is_empty());
            let missing = || Fault::new(FaultCode::InvalidEnvelope, format!("`{}` has no `SessionId`", entry.name));
            id.map(str::to_owned).ok_or_else(missing)
        };
        session = match entry.name.as_str() {
            "BeginSession" => SessionHeader::Begin,
            "Session" => SessionHeader::Use(id()?),
            "EndSession" => SessionHeader::End(id()?),
            name if IGNORED_HEADERS.contains(&name) => continue,
            name if matches!(entry.attribute("mustUnderstand"), Some("1" | "true")) => {
                return Err(Fault::new(FaultCode::NotUnderstood, format!("the header `{name}` is not supported")));
            }
            _ => continue,
        };
    }
    Ok(session)
}

fn discover(command: &Element) -> Result<Discover, Fault> {
    let rowset = command.child("RequestType").map(|name| name.text.trim().to_owned()).unwrap_or_default();
    if rowset.is_empty() {
        return Err(Fault::new(FaultCode::InvalidEnvelope, "`Discover` has no `RequestType`"));
    }
    let list = list(command, "Restrictions", "RestrictionList");
    Ok(Discover { rowset, restrictions: restrictions(list), properties: properties(command)? })
}

/// Returns the entries of a list inside its wrapper. Returns none if the wrapper or the list is missing or null.
fn list<'e>(command: &'e Element, wrapper: &str, list: &str) -> &'e [Element] {
    let wrapper = command.child(wrapper).filter(|wrapper| !wrapper.is_nil());
    let list = wrapper.and_then(|wrapper| wrapper.child(list)).filter(|list| !list.is_nil());
    list.map_or(&[], |list| &list.children)
}

fn restrictions(list: &[Element]) -> Vec<Restriction> {
    let mut restrictions: Vec<Restriction> = Vec::new();
    for element in list {
        let values = values(element);
        match restrictions.iter_mut().find(|restriction| restriction.column == element.name) {
            Some(restriction) => restriction.values.extend(values),
            None => restrictions.push(Restriction { column: element.name.clone(), values }),
        }
    }
    restrictions
}

/// Returns the values of a restriction: the contents of its `Value` elements, or its own text if it has no elements.
fn values(element: &Element) -> Vec<String> {
    let texts = if element.children.is_empty() { std::slice::from_ref(element) } else { &element.children };
    let texts = texts.iter().filter(|text| !text.is_nil()).map(|text| text.text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn execute(command: &Element) -> Result<Execute, Fault> {
    let wrapper = command.child("Command");
    let statement = wrapper.and_then(|wrapper| wrapper.child("Statement"));
    let statement = statement.map(|statement| statement.text.trim().to_owned());
    let statement = match (statement, wrapper.and_then(|wrapper| wrapper.children.first())) {
        (Some(statement), _) => statement,
        (None, Some(other)) => {
            let message = format!("the command `{}` is not supported; send a `Statement`", other.name);
            return Err(Fault::new(FaultCode::InvalidStatement, message));
        }
        (None, None) => String::new(),
    };
    let parameters = command.child("Parameters").filter(|parameters| !parameters.is_nil());
    let parameters = parameters.map_or(&[][..], |parameters| &parameters.children).iter().map(parameter);
    Ok(Execute { statement, parameters: parameters.collect::<Result<_, _>>()?, properties: properties(command)? })
}

fn parameter(element: &Element) -> Result<Parameter, Fault> {
    let name = element.child("Name").map(|name| name.text.trim()).unwrap_or_default();
    let name = name.strip_prefix('@').unwrap_or(name).to_owned();
    if name.is_empty() {
        return Err(Fault::argument("a parameter has no `Name`"));
    }
    let value = element.child("Value").filter(|value| !value.is_nil());
    let ty = value.and_then(|value| value.attribute("type")).unwrap_or_default();
    let ty = ty.rsplit(':').next().unwrap_or_default().to_owned();
    Ok(Parameter { name, ty, value: value.map(|value| value.text.clone()) })
}

fn properties(command: &Element) -> Result<Properties, Fault> {
    let mut properties = Properties::default();
    for property in list(command, "Properties", "PropertyList") {
        let value = property.text.trim();
        if value.is_empty() || property.is_nil() {
            continue;
        }
        match property.name.as_str() {
            "Catalog" => properties.catalog = Some(value.to_owned()),
            "Content" => properties.content = content(value)?,
            "Timeout" => {
                let seconds = number(property)?.ok_or_else(|| invalid("Timeout", "an integer of 0 or more", value))?;
                properties.timeout = Some(seconds).filter(|seconds| *seconds > 0);
            }
            "BeginRange" => properties.begin_range = number(property)?,
            "EndRange" => properties.end_range = number(property)?,
            _ => {}
        }
    }
    Ok(properties)
}

fn content(value: &str) -> Result<Content, Fault> {
    match value.to_ascii_lowercase().as_str() {
        "none" => Ok(Content::None),
        "schema" => Ok(Content::Schema),
        "data" => Ok(Content::Data),
        "schemadata" => Ok(Content::SchemaData),
        _ => Err(invalid("Content", "`None`, `Schema`, `Data` or `SchemaData`", value)),
    }
}

/// Parses an integer. A negative number counts as none.
fn number(property: &Element) -> Result<Option<u64>, Fault> {
    let value = property.text.trim();
    let number: i64 = value.parse().map_err(|_| invalid(&property.name, "an integer", value))?;
    Ok(u64::try_from(number).ok())
}

fn invalid(property: &str, expected: &str, found: &str) -> Fault {
    let found: String = found.chars().take(100).collect();
    Fault::argument(format!("property `{property}`: expected {expected}, found `{found}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(header: &str, body: &str) -> Result<Request, Fault> {
        let text = format!("<s:Envelope xmlns:s='x'><s:Header>{header}</s:Header><s:Body>{body}</s:Body></s:Envelope>");
        Request::read(text.as_bytes())
    }

    fn code(found: Result<Request, Fault>) -> FaultCode {
        found.unwrap_err().code
    }

    #[test]
    fn discover_has_restrictions_and_properties() {
        let body = "<Discover xmlns='urn:schemas-microsoft-com:xml-analysis'><RequestType> MDSCHEMA_CUBES </RequestType>\
                    <Restrictions><RestrictionList><CUBE_NAME>a</CUBE_NAME><CUBE_NAME>b</CUBE_NAME><SCHEMA_NAME/>\
                    <X><Value>c</Value><Value>d</Value></X></RestrictionList></Restrictions>\
                    <Properties><PropertyList><Catalog>flights</Catalog><Content>Data</Content><Format>Tabular</Format>\
                    <Timeout>0</Timeout><BeginRange>-1</BeginRange><EndRange>9</EndRange><Unknown>1</Unknown>\
                    </PropertyList></Properties></Discover>";
        let Command::Discover(discover) = envelope("", body).unwrap().command else { panic!("no Discover") };
        assert_eq!(discover.rowset, "MDSCHEMA_CUBES");
        let restriction = |column: &str, values: &[&str]| Restriction {
            column: column.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let expected =
            [restriction("CUBE_NAME", &["a", "b"]), restriction("SCHEMA_NAME", &[]), restriction("X", &["c", "d"])];
        assert_eq!(discover.restrictions, expected);
        let expected = Properties {
            catalog: Some("flights".to_owned()),
            content: Content::Data,
            end_range: Some(9),
            ..Properties::default()
        };
        assert_eq!(discover.properties, expected);
    }

    #[test]
    fn lists_may_be_missing_empty_or_null() {
        for lists in [
            "",
            "<Restrictions/><Properties/>",
            "<Restrictions xsi:nil='true'/><Properties xsi:nil='1'><PropertyList><Content>?</Content></PropertyList></Properties>",
            "<Restrictions><RestrictionList/></Restrictions><Properties><PropertyList/></Properties>",
        ] {
            let body = format!("<Discover><RequestType>X</RequestType>{lists}</Discover>");
            let expected = Discover { rowset: "X".to_owned(), ..Discover::default() };
            assert_eq!(envelope("", &body).unwrap().command, Command::Discover(expected), "{lists}");
        }
    }

    #[test]
    fn execute_has_a_statement_and_parameters() {
        let body = "<Execute><Command><Statement><![CDATA[ EVALUATE T ]]></Statement></Command><Parameters>\
                    <Parameter><Name>@a</Name><Value xsi:type='xsd:int'>1</Value></Parameter>\
                    <Parameter><Name>b</Name><Value xsi:nil='true'/></Parameter></Parameters></Execute>";
        let Command::Execute(execute) = envelope("", body).unwrap().command else { panic!("no Execute") };
        assert_eq!(execute.statement, "EVALUATE T");
        let one = Parameter { name: "a".to_owned(), ty: "int".to_owned(), value: Some("1".to_owned()) };
        let null = Parameter { name: "b".to_owned(), ty: String::new(), value: None };
        assert_eq!(execute.parameters, [one, null]);
        for command in ["", "<Command/>", "<Command><Statement/></Command>"] {
            let Command::Execute(execute) = envelope("", &format!("<Execute>{command}</Execute>")).unwrap().command
            else {
                panic!("no Execute")
            };
            assert_eq!(execute, Execute::default(), "{command}");
        }
        let other = envelope("", "<Execute><Command><Alter/></Command></Execute>");
        assert_eq!(code(other), FaultCode::InvalidStatement);
    }

    #[test]
    fn sessions_are_in_the_header() {
        let body = "<Execute/>";
        let session = |header: &str| envelope(header, body).map(|request| request.session);
        assert_eq!(session(""), Ok(SessionHeader::None));
        assert_eq!(session("<x:BeginSession mustUnderstand='1'/>"), Ok(SessionHeader::Begin));
        assert_eq!(session("<Session SessionId='a' s:mustUnderstand='1'/>"), Ok(SessionHeader::Use("a".to_owned())));
        assert_eq!(session("<EndSession SessionId='a'/>"), Ok(SessionHeader::End("a".to_owned())));
        assert_eq!(session("<Version mustUnderstand='1'/><Other mustUnderstand='0'/>"), Ok(SessionHeader::None));
        assert_eq!(session("<Other mustUnderstand='1'/>").unwrap_err().code, FaultCode::NotUnderstood);
        assert_eq!(session("<Session/>").unwrap_err().code, FaultCode::InvalidEnvelope);
    }

    #[test]
    fn other_documents_are_not_requests() {
        for text in ["<Envelope/>", "<Discover/>", "", "<!DOCTYPE a><Envelope/>"] {
            assert_eq!(code(Request::read(text.as_bytes())), FaultCode::InvalidEnvelope, "{text}");
        }
        for body in ["", "<Other/>", "<Execute/><Execute/>", "<Discover/>"] {
            assert_eq!(code(envelope("", body)), FaultCode::InvalidEnvelope, "{body}");
        }
        for property in ["<Content>All</Content>", "<Timeout>soon</Timeout>", "<Timeout>-5</Timeout>"] {
            let list = format!("<Execute><Properties><PropertyList>{property}</PropertyList></Properties></Execute>");
            assert_eq!(code(envelope("", &list)), FaultCode::InvalidArgument, "{property}");
        }
    }
}
