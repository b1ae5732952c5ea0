//! Type names and error messages as DuckDB writes them.

use super::*;

#[test]
fn native_types_become_logical_ones() {
    for (native, expected) in [
        ("DECIMAL(18,3)", LogicalType::Decimal),
        ("ENUM('a', 'b')", LogicalType::Text),
        ("hugeint", LogicalType::Integer),
        ("TIMESTAMP WITH TIME ZONE", LogicalType::TimestampTz),
        ("INTEGER[]", LogicalType::Unknown),
        ("STRUCT(a INTEGER)", LogicalType::Unknown),
        ("", LogicalType::Unknown),
    ] {
        assert_eq!(DuckDb::map_type(native), expected, "{native}");
    }
}

#[test]
fn errors_are_sorted_and_never_repeat_the_warehouse() {
    for (message, class) in [
        ("Catalog Error: Table with name secret does not exist!", ErrorClass::MissingObject),
        ("Conversion Error: Could not convert string 'secret' to INT32", ErrorClass::Data),
        ("INTERRUPT Error: Interrupted!", ErrorClass::Cancelled),
        ("something else about secret", ErrorClass::Other),
    ] {
        let classified = DuckDb::classify_error(&WarehouseError { code: String::new(), message: message.to_owned() });
        assert_eq!(classified.class, class, "{message}");
        assert!(!classified.public_message.contains("secret"));
    }
}
