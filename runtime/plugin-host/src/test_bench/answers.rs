//! Checks an answer as a server does, for a call with values of any type.
//!
//! In: a function, its arguments and its answer. Out: the fault that a server would report. A declined call has no
//! fault. Not here: whether the names in an answer exist in a project, which the compiler checks.

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use terrane_app::ports::checks::ProfiledColumn;
use terrane_app::ports::detectors::Detection;
use terrane_app::ports::plugins::PluginFault;
use wasmtime::component::Val;

use crate::bindings::check::exports::terrane::profiling::check as profiling;
use crate::bindings::detector::exports::terrane::anomaly::detector as anomaly;
use crate::bindings::governance::exports::terrane::governance::hook;
use crate::check::{self, finding, plan};
use crate::detector::check as detection;
use crate::governance::from_wire;
use crate::plugin::Grants;

/// A called function, with its arguments by name.
pub(super) struct AnsweredCall<'a> {
    pub(super) call: &'static str,
    pub(super) arguments: Vec<(&'a str, &'a Val)>,
}

impl AnsweredCall<'_> {
    /// Returns the fault for which a server would refuse the answer, or `None` if it would accept it.
    pub(super) fn refusal(&self, answer: Option<&Val>) -> Option<PluginFault> {
        match answer {
            Some(Val::Result(Ok(Some(answer)))) => self.check(answer).err(),
            _ => None,
        }
    }

    fn check(&self, answer: &Val) -> Result<(), PluginFault> {
        let call = self.call;
        let broken = |message: String| PluginFault::Answer { call, message };
        match call {
            "on-query" => {
                let verdict: hook::Verdict = self.typed(answer)?;
                from_wire::decision(verdict.decision).map(drop).map_err(broken)
            }
            "on-certify" | "on-metadata-change" => from_wire::findings(self.typed(answer)?).map(drop).map_err(broken),
            "train" => {
                let history: anomaly::SeriesBatch = self.argument("history")?;
                detection::models(self.typed(answer)?, history.offsets.len().saturating_sub(1)).map(drop)
            }
            "detect" => {
                let points: anomaly::SeriesBatch = self.argument("points")?;
                detection::append(&mut Detection::default(), &self.typed(answer)?, &points.values)
            }
            "make-plan" => {
                let grants = Grants { memo: true, query_values: true, sample_rows: true };
                plan::checked(self.typed(answer)?, &self.columns()?, grants).map(drop)
            }
            "evaluate" => finding::checked(self.typed(answer)?, self.columns()?.len(), &"component".into()).map(drop),
            _ => Ok(()),
        }
    }

    fn columns(&self) -> Result<Vec<ProfiledColumn>, PluginFault> {
        let columns: Vec<profiling::Column> = self.argument("columns")?;
        Ok(columns.iter().map(check::profiled).collect())
    }

    fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, PluginFault> {
        let found = self.arguments.iter().find(|(known, _)| *known == name);
        let missing = || PluginFault::Host { message: format!("`{}` has no argument `{name}`", self.call) };
        self.typed(found.ok_or_else(missing)?.1)
    }

    fn typed<T: DeserializeOwned>(&self, value: &Val) -> Result<T, PluginFault> {
        T::deserialize(Lifted(value)).map_err(|error| PluginFault::Host {
            message: format!("a value of `{}` cannot be read: {error}", self.call),
        })
    }
}

/// Deserializes a value as one of the contract's types. Names in the contract differ from Rust's only in hyphens and
/// capital letters.
#[derive(Clone, Copy)]
struct Lifted<'a>(&'a Val);

fn same(names: &'static [&'static str], wanted: &str) -> Option<&'static str> {
    let folded = |name: &str| -> String {
        name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = folded(wanted);
    names.iter().copied().find(|name| folded(name) == wanted)
}

impl<'de> IntoDeserializer<'de, Error> for Lifted<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Lifted<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Val::Bool(value) => visitor.visit_bool(*value),
            Val::S8(value) => visitor.visit_i8(*value),
            Val::U8(value) => visitor.visit_u8(*value),
            Val::S16(value) => visitor.visit_i16(*value),
            Val::U16(value) => visitor.visit_u16(*value),
            Val::S32(value) => visitor.visit_i32(*value),
            Val::U32(value) => visitor.visit_u32(*value),
            Val::S64(value) => visitor.visit_i64(*value),
            Val::U64(value) => visitor.visit_u64(*value),
            Val::Float32(value) => visitor.visit_f32(*value),
            Val::Float64(value) => visitor.visit_f64(*value),
            Val::Char(value) => visitor.visit_char(*value),
            Val::String(text) => visitor.visit_borrowed_str(text),
            Val::List(items) | Val::Tuple(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Lifted))),
            Val::Option(None) => visitor.visit_none(),
            Val::Option(Some(value)) => visitor.visit_some(Lifted(value)),
            Val::Flags(names) => visitor.visit_seq(SeqDeserializer::new(names.iter().map(String::as_str))),
            _ => Err(Error::custom("a value of another type is expected")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Val::Record(values) = self.0 else { return Err(Error::custom("a record is expected")) };
        let known = values.iter().filter_map(|(name, value)| Some((same(fields, name)?, Lifted(value))));
        visitor.visit_map(MapDeserializer::new(known))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, payload) = match self.0 {
            Val::Enum(name) => (name, None),
            Val::Variant(name, payload) => (name, payload.as_deref()),
            _ => return Err(Error::custom("a variant is expected")),
        };
        let name = same(variants, name).ok_or_else(|| Error::unknown_variant(name, variants))?;
        visitor.visit_enum(Case { name, payload })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Case<'a> {
    name: &'static str,
    payload: Option<&'a Val>,
}

impl<'de> EnumAccess<'de> for Case<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Case<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        let payload = self.payload.ok_or_else(|| Error::custom(format!("`{}` has no payload", self.name)))?;
        seed.deserialize(Lifted(payload))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom(format!("`{}` is not a case with several values", self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        Err(Error::custom(format!("`{}` is not a case with several values", self.name)))
    }
}

/// Deserializes a set of flags as empty, because no check reads flags.
macro_rules! unread_flags {
    ($($flags:ty),*) => {$(
        impl<'de> Deserialize<'de> for $flags {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde::de::IgnoredAny::deserialize(deserializer).map(|_| <$flags>::empty())
            }
        }
    )*};
}

unread_flags!(hook::DependsOn, crate::bindings::dialect::exports::terrane::dialect::dialect::Feature);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn text(text: &str) -> Val {
        Val::String(text.to_owned())
    }

    fn record<const N: usize>(fields: [(&str, Val); N]) -> Val {
        Val::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn numbers(values: &[f64]) -> Val {
        Val::List(values.iter().copied().map(Val::Float64).collect())
    }

    fn ok(value: Val) -> Val {
        Val::Result(Ok(Some(Box::new(value))))
    }

    fn refusal(call: &'static str, arguments: Vec<(&str, &Val)>, answer: &Val) -> Option<String> {
        AnsweredCall { call, arguments }.refusal(Some(answer)).map(|fault| fault.to_string())
    }

    fn denial(code: &str, message: &str) -> Val {
        let denial =
            record([("code", text(code)), ("public-message", text(message)), ("audit-reason", text("as agreed"))]);
        ok(record([
            ("decision", Val::Variant("deny".to_owned(), Some(Box::new(denial)))),
            ("depends", Val::Flags(vec!["user".to_owned()])),
            ("ttl-seconds", Val::U32(0)),
        ]))
    }

    #[test]
    fn denial_is_checked_against_the_contract() {
        let refused = |code: &str, message: &str| refusal("on-query", Vec::new(), &denial(code, message));
        assert_eq!(refused("no_region", "not yours"), None);
        assert!(refused("No Code!", "not yours").unwrap().contains("No Code!"));
        assert!(refused("no_region", &"x".repeat(5_000)).unwrap().contains("5000 bytes"));
    }

    #[test]
    fn filter_has_one_root() {
        let list = || Val::List(Vec::new());
        let arena = record([
            ("nodes", list()),
            ("args", list()),
            ("columns", list()),
            ("literals", list()),
            ("names", list()),
            ("roots", list()),
        ]);
        let filter = record([("cube", text("orders")), ("predicate", arena)]);
        let obligations = record([
            ("row-filters", Val::List(vec![filter])),
            ("masks", list()),
            ("max-rows", Val::Option(None)),
            ("require-time-filter", Val::Bool(false)),
            ("warnings", list()),
            ("audit", Val::List(vec![Val::Tuple(vec![text("a"), text("b")])])),
        ]);
        let answer = ok(record([
            ("decision", Val::Variant("permit".to_owned(), Some(Box::new(obligations)))),
            ("depends", Val::Flags(Vec::new())),
            ("ttl-seconds", Val::U32(0)),
        ]));
        assert!(refusal("on-query", Vec::new(), &answer).unwrap().contains("0 roots"));
    }

    #[test]
    fn detection_is_as_long_as_its_points() {
        let points = record([
            ("offsets", Val::List(vec![Val::U32(0), Val::U32(2)])),
            ("timestamps-ms", Val::List(vec![Val::S64(0), Val::S64(1)])),
            ("values", numbers(&[1.0, 2.0])),
            ("step-ms", Val::Option(Some(Box::new(Val::U64(1))))),
        ]);
        let detection = |count: usize| {
            let list = || numbers(&vec![0.5; count]);
            ok(record([
                ("scores", list()),
                ("raw", list()),
                ("expected", list()),
                ("lower-bound", list()),
                ("upper-bound", list()),
                ("anomalous", Val::List(vec![Val::Bool(false); count])),
            ]))
        };
        let refused = |answer: &Val| refusal("detect", vec![("points", &points)], answer);
        assert_eq!(refused(&detection(2)), None);
        assert!(refused(&detection(1)).unwrap().contains("scores has 1 entries for 2 points"));
        assert_eq!(refused(&Val::Result(Err(None))), None, "a call may be declined");
    }
}
