//! The language server: diagnostics, completion, hover, navigation and rename for a project's files in any editor.
//!
//! In: messages of the Language Server Protocol, and a project's files through a port ([`Projects`]). Out: answers and
//! diagnostics. The core is pure: a [`Workspace`] holds the files and the unsaved contents of the editor. A feature is
//! a function from a workspace and a position to data. [`serve`] reads and writes messages. The server sends no
//! statement to a warehouse. Not here: the file system, settings and expectations, which the program provides.

mod completion;
mod hover;
mod index;
mod navigation;
mod ports;
mod position;
mod rename;
mod server;
mod transport;
mod uri;
mod workspace;

pub use completion::complete;
pub use hover::{Format, hover};
pub use navigation::{definition, document_symbols, references, workspace_symbols};
pub use ports::{FileSchemas, ProjectFiles, Projects};
pub use rename::{Refusal, prepare_rename, rename};
pub use server::{End, serve};
pub use workspace::{Workspace, is_watched};
