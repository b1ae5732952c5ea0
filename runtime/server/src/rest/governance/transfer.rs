//! Export and import of all governed records as YAML.
//!
//! In: the use cases. Out: the file of an export, and the numbers of an import. Both need the scope `admin`, since a
//! file contains every record, whatever policies hide.

use axum::response::Response;
use terrane_app::blocking::on_thread;
use terrane_wire::governance::records::records_to_yaml;
use terrane_wire::governance::transfer as wire;
use terrane_wire::{Code, ErrorBody};

use super::docs::{EXPORT, IMPORT};
use super::{fresh, service, text};
use crate::app::{App, Scope};
use crate::edge::{ApiError, BodyFormat, Call, JSON, RouteAccess, Routes, json_answer};

const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);

/// YAML bodies (RFC 9512).
const YAML: BodyFormat = BodyFormat { name: "YAML", media_type: "application/yaml", suffix: Some("+yaml") };

pub(super) fn register(routes: Routes) -> Routes {
    routes.get("/api/v1/governance/export", ADMIN, &EXPORT, export).post(
        "/api/v1/governance/import",
        ADMIN,
        &IMPORT,
        import,
    )
}

async fn export(app: App, _: Call) -> Result<Response, ApiError> {
    let set = service(&app)?.export().await.map_err(|error| ErrorBody::from_store(&error))?;
    let written = on_thread(move || records_to_yaml(&set)).await;
    let file = written.map_err(|error| ApiError::new(Code::InternalError, error))?;
    Ok(fresh(text(file, "text/plain; charset=utf-8")))
}

async fn import(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let mode = wire::import_mode_from_parameters(call.query_string())?;
    // JSON is a subset of YAML.
    let format = if JSON.is_of(call.headers()) { &JSON } else { &YAML };
    let body = call.body(&app, format).await?;
    let set = on_thread(move || wire::records_from_body(&body)).await.map_err(|error| *error)?;
    let imported = service(&app)?.import(&set, mode, &context).await;
    let summary = imported.map_err(|error| ErrorBody::from(&error))?;
    Ok(fresh(json_answer(&wire::GovernanceImport::new(mode, summary))))
}
