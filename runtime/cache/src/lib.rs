//! Adapters of the port of the result cache, which store results of queries.
//!
//! In: results by the digest of their statements. Out: these results, until they are evicted. Not here: which results
//! may be stored or used (app).

mod breaker;
mod memory;
mod redis;
mod value;

pub use memory::MemoryCache;
pub use redis::{RedisCache, RedisSettings, RedisUrlError};
