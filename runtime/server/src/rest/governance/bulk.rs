//! Several changes of governed records in one request.

use axum::response::Response;
use terrane_wire::ErrorBody;
use terrane_wire::governance::bulk as wire;

use super::docs::BULK;
use super::{WRITE, fresh, service};
use crate::app::App;
use crate::edge::{ApiError, Call, Routes, json_answer};

pub(super) fn register(routes: Routes) -> Routes {
    routes.post("/api/v1/governance/bulk", WRITE, &BULK, bulk)
}

async fn bulk(app: App, call: Call) -> Result<Response, ApiError> {
    let context = call.context.clone();
    let operations = wire::operations_from_wire(&call.json_body(&app).await?)?;
    let service = service(&app)?;
    let mut results = Vec::with_capacity(operations.len());
    for operation in operations {
        results.push(match operation {
            Ok(operation) => service.apply(&operation, &context).await.map_err(|error| ErrorBody::from(&error)),
            Err(error) => Err(error.into()),
        });
    }
    Ok(fresh(json_answer(&wire::GovernanceBulkResults::new(results))))
}
