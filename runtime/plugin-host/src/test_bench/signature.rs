//! Returns the type of an exported function as one line. A component's type has no names for records, variants and
//! enums, so the line shows their kind instead. `terrane plugin inspect --wit` prints the whole type.

use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

pub(super) fn text(function: &ComponentFunc) -> String {
    let parameters = function.params().map(|(name, ty)| format!("{name}: {}", of_type(&ty)));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let result = function.results().next().map_or_else(String::new, |ty| format!(" -> {}", of_type(&ty)));
    format!("func({parameters}){result}")
}

fn of_type(ty: &Type) -> String {
    let or_nothing = |ty: Option<Type>| ty.map_or_else(|| "_".to_owned(), |ty| of_type(&ty));
    match ty {
        Type::List(list) => format!("list<{}>", of_type(&list.ty())),
        Type::Option(option) => format!("option<{}>", of_type(&option.ty())),
        Type::Tuple(tuple) => format!("tuple<{}>", tuple.types().map(|ty| of_type(&ty)).collect::<Vec<_>>().join(", ")),
        Type::Result(result) => format!("result<{}, {}>", or_nothing(result.ok()), or_nothing(result.err())),
        Type::Bool => "bool".to_owned(),
        Type::S8 => "s8".to_owned(),
        Type::U8 => "u8".to_owned(),
        Type::S16 => "s16".to_owned(),
        Type::U16 => "u16".to_owned(),
        Type::S32 => "s32".to_owned(),
        Type::U32 => "u32".to_owned(),
        Type::S64 => "s64".to_owned(),
        Type::U64 => "u64".to_owned(),
        Type::Float32 => "f32".to_owned(),
        Type::Float64 => "f64".to_owned(),
        Type::Char => "char".to_owned(),
        Type::String => "string".to_owned(),
        Type::Record(_) => "record".to_owned(),
        Type::Variant(_) => "variant".to_owned(),
        Type::Enum(_) => "enum".to_owned(),
        Type::Flags(_) => "flags".to_owned(),
        _ => "resource".to_owned(),
    }
}
