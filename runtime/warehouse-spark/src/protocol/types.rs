//! The types of columns (`types.proto`).

use prost::{Message, Oneof};

/// A message whose fields this adapter does not use.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DataType {
    #[prost(
        oneof = "DataTypeKind",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 28"
    )]
    pub(crate) kind: Option<DataTypeKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum DataTypeKind {
    #[prost(message, tag = "1")]
    Null(Empty),
    #[prost(message, tag = "2")]
    Binary(Empty),
    #[prost(message, tag = "3")]
    Boolean(Empty),
    #[prost(message, tag = "4")]
    Byte(Empty),
    #[prost(message, tag = "5")]
    Short(Empty),
    #[prost(message, tag = "6")]
    Integer(Empty),
    #[prost(message, tag = "7")]
    Long(Empty),
    #[prost(message, tag = "8")]
    Float(Empty),
    #[prost(message, tag = "9")]
    Double(Empty),
    #[prost(message, tag = "10")]
    Decimal(DecimalType),
    #[prost(message, tag = "11")]
    String(Empty),
    #[prost(message, tag = "12")]
    Char(Empty),
    #[prost(message, tag = "13")]
    VarChar(Empty),
    #[prost(message, tag = "14")]
    Date(Empty),
    #[prost(message, tag = "15")]
    Timestamp(Empty),
    #[prost(message, tag = "16")]
    TimestampNtz(Empty),
    #[prost(message, tag = "17")]
    CalendarInterval(Empty),
    #[prost(message, tag = "18")]
    YearMonthInterval(Empty),
    #[prost(message, tag = "19")]
    DayTimeInterval(Empty),
    #[prost(message, tag = "20")]
    Array(Box<ArrayType>),
    #[prost(message, tag = "21")]
    Struct(StructType),
    #[prost(message, tag = "22")]
    Map(Box<MapType>),
    #[prost(message, tag = "23")]
    UserDefined(Empty),
    #[prost(message, tag = "24")]
    Unparsed(Empty),
    #[prost(message, tag = "25")]
    Variant(Empty),
    #[prost(message, tag = "28")]
    Time(Empty),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct DecimalType {
    #[prost(int32, optional, tag = "1")]
    pub(crate) scale: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) precision: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArrayType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) element_type: Option<Box<DataType>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MapType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) key_type: Option<Box<DataType>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) value_type: Option<Box<DataType>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructType {
    #[prost(message, repeated, tag = "1")]
    pub(crate) fields: Vec<StructField>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructField {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) data_type: Option<DataType>,
}
