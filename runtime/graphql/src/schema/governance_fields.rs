//! The fields of the root for governance.
//!
//! In: arguments. Out: answers of the use cases of the routes below `/api/v1/governance`.

use async_graphql::{Context, ID, Object, Result};
use terrane_app::governance::{ArtifactOrder, ArtifactQuery};

use super::artifact_ref::ArtifactType;
use super::catalog::{self, GovernedArtifact, GovernedArtifactPage};
use super::certification::{self, CertificationPage, CertificationRecord};
use super::compliance::{self, GovernanceReport};
use super::glossary::{self, GlossaryStatus, GlossaryTerm};
use super::governance::page;
use super::governance_history::{self, GovernanceHistory, HistoryArguments};
use super::modules::has_governance;
use super::ownership::{self, ArtifactOwners, OwnerAssignment, OwnerType};
use crate::enums::CertificationStatus;

#[derive(Default)]
pub(crate) struct GovernanceFields;

#[Object]
impl GovernanceFields {
    /// Terms of the glossary: the best for `search` first, and otherwise by category and name.
    #[graphql(visible = "has_governance")]
    async fn glossary_terms(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Words to find in names, synonyms and definitions.")] search: Option<String>,
        category: Option<String>,
        #[graphql(desc = "Default: all but archived terms.")] status: Option<GlossaryStatus>,
        #[graphql(desc = "The maximum number of terms, 1 to 1000. Default: 100.")] limit: Option<i64>,
    ) -> Result<Vec<GlossaryTerm>> {
        Ok(glossary::terms(context, search, category, status, limit).await?)
    }

    /// One term of the glossary, with the links that the caller may see.
    #[graphql(visible = "has_governance")]
    async fn glossary_term(&self, context: &Context<'_>, id: ID) -> Result<Option<GlossaryTerm>> {
        Ok(Some(glossary::term(context, &id).await?))
    }

    /// The certification of an artifact, with its steps.
    #[graphql(visible = "has_governance")]
    async fn certification(
        &self,
        context: &Context<'_>,
        artifact_type: ArtifactType,
        #[graphql(desc = "Such as `orders` or `orders.revenue`.")] artifact_id: String,
    ) -> Result<Option<CertificationRecord>> {
        Ok(Some(certification::one(context, artifact_type, artifact_id).await?))
    }

    /// The recorded certifications, by artifact. With the status `DRAFT`, also those of artifacts without a record.
    #[graphql(visible = "has_governance")]
    async fn certifications(
        &self,
        context: &Context<'_>,
        status: Option<CertificationStatus>,
        artifact_type: Option<ArtifactType>,
        #[graphql(desc = "1 to 500. Default: 50.")] limit: Option<i64>,
        #[graphql(desc = "The number of certifications to skip.")] offset: Option<i64>,
    ) -> Result<CertificationPage> {
        Ok(certification::list(context, status, artifact_type, (limit, offset)).await?)
    }

    /// The owners of an artifact.
    #[graphql(visible = "has_governance")]
    async fn owners(
        &self,
        context: &Context<'_>,
        artifact_type: ArtifactType,
        #[graphql(desc = "Such as `orders` or `orders.revenue`.")] artifact_id: String,
    ) -> Result<Option<ArtifactOwners>> {
        Ok(Some(ownership::of_artifact(context, artifact_type, artifact_id).await?))
    }

    /// The artifacts of an owner that the caller may see, with the roles of the owner.
    #[graphql(visible = "has_governance")]
    async fn artifacts_by_owner(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "A user id, or the name of a group.")] owner_id: String,
        #[graphql(desc = "Default: both.")] owner_type: Option<OwnerType>,
    ) -> Result<Vec<OwnerAssignment>> {
        Ok(ownership::of_owner(context, owner_id, owner_type).await?)
    }

    /// The artifacts that the caller may see, by type and id.
    #[graphql(visible = "has_governance")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the field")]
    async fn catalog(
        &self,
        context: &Context<'_>,
        artifact_type: Option<ArtifactType>,
        #[graphql(desc = "Only this cube and its members.")] cube: Option<String>,
        #[graphql(desc = "Only artifacts with all of these tags.")] tags: Option<Vec<String>>,
        certification_status: Option<CertificationStatus>,
        #[graphql(desc = "Only artifacts of this user or group, in any role.")] owner_id: Option<String>,
        #[graphql(desc = "1 to 500. Default: 50.")] limit: Option<i64>,
        #[graphql(desc = "The number of artifacts to skip.")] offset: Option<i64>,
    ) -> Result<GovernedArtifactPage> {
        let (limit, offset) = page((limit, offset))?;
        let query = ArtifactQuery {
            text: String::new(),
            tags: tags.unwrap_or_default(),
            status: certification_status.map(Into::into),
            artifact_type: artifact_type.map(Into::into),
            cube,
            owner_id,
            order: ArtifactOrder::Artifact,
            limit,
            offset,
        };
        Ok(catalog::list(context, query).await?)
    }

    /// The artifacts whose id, title, description, tags or terms contain all words, best match first.
    #[graphql(visible = "has_governance")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the field")]
    async fn search_artifacts(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Words to find. Default: all artifacts match.")] query: Option<String>,
        #[graphql(desc = "Only artifacts with all of these tags.")] tags: Option<Vec<String>>,
        certification_status: Option<CertificationStatus>,
        artifact_type: Option<ArtifactType>,
        #[graphql(desc = "1 to 500. Default: 50.")] limit: Option<i64>,
        #[graphql(desc = "The number of artifacts to skip.")] offset: Option<i64>,
    ) -> Result<GovernedArtifactPage> {
        let (limit, offset) = page((limit, offset))?;
        let query = ArtifactQuery {
            text: query.unwrap_or_default(),
            tags: tags.unwrap_or_default(),
            status: certification_status.map(Into::into),
            artifact_type: artifact_type.map(Into::into),
            limit,
            offset,
            ..ArtifactQuery::default()
        };
        Ok(catalog::list(context, query).await?)
    }

    /// An artifact with its metadata, owners, certification and terms.
    #[graphql(visible = "has_governance")]
    async fn artifact(
        &self,
        context: &Context<'_>,
        artifact_type: ArtifactType,
        #[graphql(desc = "Such as `orders` or `orders.revenue`.")] artifact_id: String,
    ) -> Result<Option<GovernedArtifact>> {
        Ok(Some(catalog::one(context, artifact_type, artifact_id).await?))
    }

    /// The changes of governed records that the caller may see, newest first.
    #[graphql(visible = "has_governance")]
    async fn governance_history(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Only changes of this artifact, with `artifactId`.")] artifact_type: Option<ArtifactType>,
        #[graphql(desc = "Such as `orders` or `orders.revenue`.")] artifact_id: Option<String>,
        #[graphql(desc = "Only changes of this term, instead of an artifact.")] term_id: Option<ID>,
        #[graphql(desc = "The value of `next` in the previous page.")] before: Option<String>,
        #[graphql(desc = "1 to 500. Default: 50.")] limit: Option<i64>,
    ) -> Result<GovernanceHistory> {
        let arguments = HistoryArguments { artifact_type, artifact_id, term_id, before, limit };
        Ok(governance_history::history(context, arguments).await?)
    }

    /// The compliance report: the certified share, and the artifacts that the caller may see, with findings.
    #[graphql(visible = "has_governance")]
    async fn governance_report(&self, context: &Context<'_>) -> Result<GovernanceReport> {
        Ok(compliance::report(context).await?)
    }
}
