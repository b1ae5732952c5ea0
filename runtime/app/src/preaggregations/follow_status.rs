//! Streams of the states of rollups for followers.
//!
//! In: a rollup and its caller. Out: a stream of its states. All streams of a process share one reader of the state
//! database. Each state has only what its caller may see. Not here: the comparison with the previous state, because a
//! caller may not see all of the state.

use std::sync::Arc;

use futures_util::stream::{self, Stream};

use super::Preaggregations;
use super::requests::{RefreshError, RefreshRequest, named};
use super::status::{NewestBuilds, RollupStatus};
use crate::domain::RequestContext;
use crate::ports::store::StoreError;
use crate::shared_reader::Readings;

/// One stream of states.
struct Followed {
    service: Arc<Preaggregations>,
    request: RequestContext,
    wanted: RefreshRequest,
    /// The reader of the shared states; `None` before the first state was read.
    readings: Option<Readings<Arc<NewestBuilds>>>,
}

impl Preaggregations {
    /// Returns the state of a rollup at once, and then periodically, even if it has not changed. An error is the last
    /// item.
    pub fn follow_status(
        self: &Arc<Self>,
        request: RequestContext,
        cube: String,
        name: String,
    ) -> impl Stream<Item = Result<RollupStatus, RefreshError>> + Send + use<> {
        let wanted = RefreshRequest { cube: Some(cube), name: Some(name), partitions: Vec::new() };
        let followed = Followed { service: Arc::clone(self), request, wanted, readings: None };
        stream::unfold(Some(followed), |followed| async move {
            let mut followed = followed?;
            match followed.next().await {
                Ok(status) => Some((Ok(status), Some(followed))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Followed {
    async fn next(&mut self) -> Result<RollupStatus, RefreshError> {
        let builds = match &mut self.readings {
            // A new stream reads the state itself, because the shared one may be older than the stream.
            None => {
                self.readings = Some(self.shared_readings());
                Arc::new(self.service.newest_builds().await?)
            }
            Some(readings) => readings.next().await?,
        };
        let snapshot = self.service.ports.catalog.snapshot();
        let rollup = named(&snapshot, &self.wanted, &self.request)?;
        let status = rollup.first().map(|rollup| self.service.status_of(rollup, &snapshot, &builds, &self.request));
        status.ok_or(RefreshError::Disabled)
    }

    fn shared_readings(&self) -> Readings<Arc<NewestBuilds>> {
        let service = Arc::clone(&self.service);
        self.service.reader.follow(move || {
            let service = Arc::clone(&service);
            async move { Ok::<_, StoreError>(Arc::new(service.newest_builds().await?)) }
        })
    }
}
