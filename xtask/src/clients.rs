//! Prepares the Python and npm tools of the system tests: generators of clients, libraries that read Arrow, tools that
//! test the packages in `sdk`, an SMTP server, a server of Spark Connect, the schemas of Kubernetes, and an emulator of
//! Snowflake.
//!
//! In: pinned packages. Out: Python environments in the target folder and npm packages in `.prepared`, or a note about
//! each missing tool. A missing tool is not an error here: its tests report themselves as skipped, and fail in CI.

use crate::context::Context;
use crate::{npm, python};

/// The Python environments, as (folder of the environment and of its pinned packages, name of the tools).
const PYTHON: [(&str, &str); 9] = [
    ("openapi-client", "openapi-python-client"),
    ("data-frames", "pandas and polars"),
    ("graphql-client", "gql"),
    ("kubernetes-validate", "kubernetes-validate"),
    ("python-client", "httpx, mypy and pytest"),
    ("smtp-server", "aiosmtpd"),
    ("snowflake-server", "fakesnow"),
    ("spark-server", "pysail"),
    ("xmla-client", "netas-xmla-with-dax"),
];

/// Installs the tools that are missing.
pub(crate) fn prepare(context: &Context) {
    for (folder, name) in PYTHON {
        let requirements = context.root.join("xtask").join(folder).join("requirements.txt");
        let installed = context
            .target()
            .and_then(|target| python::environment(context, &target.join("tools").join(folder), &requirements, name));
        match installed {
            Ok(_) => println!("ok    {name} for the system tests"),
            Err(error) => println!("note  {name} is missing, so its tests are skipped: {error:#}"),
        }
    }
    npm::prepare(context, "openapi-typescript", "tests/system/clients", "generated-clients");
    npm::prepare(context, "typescript", "tests/system/typescript", "typescript-client");
    npm::prepare(context, "vscode-languageclient", "sdk/vscode", "vscode-extension");
    npm::prepare(context, "graphql-http", "tests/system/graphql", "graphql-clients");
}
