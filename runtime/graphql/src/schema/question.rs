//! Fields whose arguments are a query.
//!
//! In: the name of a field, and the function that answers its query. Out: an object with this one field, for the roots
//! of the schema. All these fields take the same arguments, which are declared here once.

/// Defines an object with one field that takes the arguments of a query. `$kind` is the attribute of the object.
macro_rules! question_field {
    ([$kind:meta] $(#[$attribute:meta])* $object:ident . $field:ident ( $($(#[$argument:meta])* $name:ident : $ty:ty),* ) -> $output:ty = $answer:path) => {
        #[derive(Default)]
        pub(crate) struct $object;

        #[$kind]
        impl $object {
            $(#[$attribute])*
            #[expect(clippy::too_many_arguments, reason = "each is an argument of the field")]
            async fn $field(
                &self,
                context: &async_graphql::Context<'_>,
                #[graphql(desc = "The cube of members without a cube name.")] cube: Option<String>,
                #[graphql(desc = "Metrics or measures.")] metrics: Option<Vec<String>>,
                #[graphql(desc = "Measures or metrics, as `metrics`.")] measures: Option<Vec<String>>,
                #[graphql(desc = "Members to group by, such as `orders.created_at.month`.")]
                dimensions: Option<Vec<String>>,
                #[graphql(desc = "Conditions that all hold.")] filters: Option<Vec<$crate::schema::inputs::FilterInput>>,
                #[graphql(name = "where", desc = "A tree of conditions, besides `filters`.")]
                where_: Option<$crate::schema::inputs::WhereInput>,
                #[graphql(desc = "Named filters of cubes.")] segments: Option<Vec<String>>,
                #[graphql(desc = "Times to group or to filter by.")]
                time_dimensions: Option<Vec<$crate::schema::inputs::TimeDimensionInput>>,
                #[graphql(desc = "A time range for all measures.")]
                time_range: Option<$crate::schema::inputs::TimeRangeInput>,
                #[graphql(desc = "Sort keys. Default: an order that the server chooses.")]
                order: Option<Vec<$crate::schema::inputs::OrderInput>>,
                #[graphql(desc = "The number of rows of the page. Default: 1000.")] limit: Option<i64>,
                #[graphql(desc = "The number of rows before the page.")] offset: Option<i64>,
                #[graphql(desc = "A time zone of the IANA database, such as `Europe/Berlin`.")] timezone: Option<String>,
                #[graphql(desc = "`false`: `totalCount` may be null.")] total: Option<bool>,
                #[graphql(desc = "`true`: adds each measure without dimensions as `totals`.")] totals: Option<bool>,
                #[graphql(desc = "The range to compare the time range with.")]
                compare_range: Option<$crate::schema::inputs::CompareRangeInput>,
                #[graphql(desc = "`true`: a row for each step of time, also without data.")] fill_gaps: Option<bool>,
                $($(#[$argument])* $name: $ty),*
            ) -> async_graphql::Result<$output> {
                let question = $crate::schema::inputs::Question {
                    cube, metrics, measures, dimensions, filters, where_, segments, time_dimensions, time_range, order,
                    limit, offset, timezone, total, totals, compare_range, fill_gaps,
                };
                Ok($answer($crate::schema::request::state(context), question $(, $name)*).await?)
            }
        }
    };
}

pub(crate) use question_field;
