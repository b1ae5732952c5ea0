//! XML for Analysis on `/api/v1/dax/xmla`.
//!
//! In: envelopes by POST, whose requests `terrane-xmla` reads. Out: rowsets of the project, rows of DAX, or a fault.
//! Faults have status 200, because many clients do not show a fault with another status. Only a missing or wrong
//! credential is a 401, after which clients send their password. Not here: the envelope (`terrane-xmla`), and answers
//! to queries (`app::dax`).

mod docs;
mod execute;
mod rowset;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::Router;
use terrane_app::ports::governance::Surface;
use terrane_wire::Code;
use terrane_xmla::envelope::{self, Answered};
use terrane_xmla::request::{Command, Properties, SessionHeader};
use terrane_xmla::scope::ServerInfo;
use terrane_xmla::{Fault, FaultCode, Request as XmlaRequest};

use crate::app::{App, Scope};
use crate::dax::{body_limit, challenge_with_basic};
use crate::edge::{
    ApiError, BodyFormat, Call, Credentials, Parts, Protocol, Route, RouteAccess, Routes, UnknownParameters,
};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/api/v1/dax/xmla";

const XML: BodyFormat = BodyFormat { name: "an envelope of SOAP", media_type: "text/xml", suffix: None };
const CONTENT: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");

/// XMLA, with errors as faults.
pub(crate) struct XmlaProtocol;

impl Protocol for XmlaProtocol {
    fn surface(&self) -> Surface {
        Surface::Xmla
    }

    fn answers(&self, request: &Request) -> bool {
        request.uri().path() == PATH
    }

    fn is_probe(&self, _: &str) -> bool {
        false
    }

    fn accepts(&self, _: &Credentials) -> bool {
        true
    }

    fn render(&self, error: ApiError, correlation_id: &str) -> Response {
        let Parts { body, headers, .. } = error.into_parts();
        let status = match body.code.status() {
            401 => StatusCode::UNAUTHORIZED,
            405 => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::OK,
        };
        let fault = Fault::new(fault_code(body.code), body.message);
        let mut response = respond(envelope::fault(&fault, correlation_id).into());
        *response.status_mut() = status;
        if status == StatusCode::UNAUTHORIZED {
            challenge_with_basic(&mut response);
        }
        response.headers_mut().extend(headers);
        response
    }
}

fn all() -> Routes {
    let access = RouteAccess::Scoped(Scope::Read);
    let route = Route { method: Method::POST, path: PATH, access, doc: &docs::POST };
    // Connection strings of clients add parameters of their own.
    Routes::default().add(route, UnknownParameters::Ignored, post)
}

pub(crate) fn routes() -> Vec<Route> {
    all().into_parts().1
}

pub(crate) fn router() -> Router<App> {
    all().into_parts().0
}

async fn post(app: App, call: Call) -> Result<Response, ApiError> {
    let caller = XmlaCaller { info: server_info(&app, &call), context: call.context.clone() };
    let body = call.body_up_to(body_limit(&app), &app, &XML).await?;
    let id = caller.context.correlation_id.clone();
    match answer(app, caller, &body).await {
        Ok(body) => Ok(respond(body)),
        Err(fault) => Ok(respond(envelope::fault(&fault, &id).into())),
    }
}

/// The caller of a request, and the server under the name that the caller uses.
#[derive(Clone)]
struct XmlaCaller {
    context: terrane_app::domain::RequestContext,
    info: ServerInfo,
}

async fn answer(app: App, caller: XmlaCaller, body: &Bytes) -> Result<Body, Fault> {
    let request = XmlaRequest::read(body)?;
    let properties = match &request.command {
        Command::Discover(discover) => &discover.properties,
        Command::Execute(execute) => &execute.properties,
    };
    check_catalog(properties, &caller.info)?;
    let session = session(&app, &caller, &request.session)?;
    match request.command {
        Command::Discover(discover) => rowset::discover(app, caller, &discover, session.as_deref()).await,
        Command::Execute(execute) => execute::execute(app, caller, execute, session.as_deref()).await,
    }
}

/// Starts, resumes or ends a session, and returns its id for the header of the response.
fn session(app: &App, caller: &XmlaCaller, header: &SessionHeader) -> Result<Option<String>, Fault> {
    let sessions = &app.services.dax_sessions;
    let unknown = || Fault::new(FaultCode::UnknownSession, "the session is unknown or has ended; begin a new one");
    match header {
        SessionHeader::None => Ok(None),
        SessionHeader::Begin => match sessions.begin(&caller.context) {
            Ok(session) => Ok(Some(session.id.to_string())),
            Err(error) => Err(Fault::new(FaultCode::Failed, error.to_string())),
        },
        SessionHeader::Use(id) => {
            sessions.resume(&caller.context, id).map(|session| Some(session.id.to_string())).ok_or_else(unknown)
        }
        SessionHeader::End(id) if sessions.end(&caller.context, id) => Ok(None),
        SessionHeader::End(_) => Err(unknown()),
    }
}

fn check_catalog(properties: &Properties, info: &ServerInfo) -> Result<(), Fault> {
    match &properties.catalog {
        Some(catalog) if !catalog.eq_ignore_ascii_case(&info.catalog) => {
            let catalog: String = catalog.chars().take(100).collect();
            let message = format!("unknown catalog `{catalog}`; the catalog of this server is `{}`", info.catalog);
            Err(Fault::new(FaultCode::InvalidArgument, message))
        }
        _ => Ok(()),
    }
}

fn server_info(app: &App, call: &Call) -> ServerInfo {
    let host = call.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let scheme = if call.is_secure() { "https" } else { "http" };
    let numbers = app.settings.version.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    let version: Vec<String> = numbers.chain(std::iter::repeat(0)).take(4).map(|number| number.to_string()).collect();
    ServerInfo {
        catalog: app.services.catalog.snapshot().definitions.project.to_string(),
        url: format!("{scheme}://{host}{PATH}"),
        version: version.join("."),
    }
}

fn respond(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, CONTENT);
    response
}

fn fault_code(code: Code) -> FaultCode {
    match code {
        Code::DaxSyntaxError
        | Code::InvalidMeasure
        | Code::InvalidDimension
        | Code::InvalidFilter
        | Code::NoJoinPath => FaultCode::InvalidStatement,
        Code::Unauthorized
        | Code::TokenExpired
        | Code::InvalidToken
        | Code::Forbidden
        | Code::GuardrailExceeded
        | Code::MisdirectedRequest => FaultCode::Forbidden,
        Code::InvalidQuery | Code::UnsupportedMediaType | Code::PayloadTooLarge | Code::MethodNotAllowed => {
            FaultCode::InvalidEnvelope
        }
        _ => FaultCode::Failed,
    }
}

/// Appends the end of a response, and returns it whole.
fn finished(answered: Answered, mut out: Vec<u8>) -> Body {
    envelope::write_foot(answered, &mut out);
    out.into()
}
