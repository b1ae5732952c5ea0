//! The inline XML Schema of a result, and the elements of its rows.
//!
//! In: the columns of a rowset or of a query. Out: `xsd:schema`, and rows whose elements have the names that the schema
//! declares. Nulls are left out of rows. Many clients cannot read rows without the schema.

use std::borrow::Cow;

use crate::names;
use crate::rowset::{Cell, ColumnType, Field};
use crate::xml::write_text;

/// The namespace of rowsets.
pub const ROWSET: &str = "urn:schemas-microsoft-com:xml-analysis:rowset";

/// A column of a result.
#[derive(Debug, Clone)]
pub struct ResultField {
    /// The name that clients show.
    name: Cow<'static, str>,
    /// The name of the XML element.
    element: String,
    ty: ColumnType,
}

impl ResultField {
    pub fn new(name: impl Into<Cow<'static, str>>, ty: ColumnType) -> Self {
        let name = name.into();
        ResultField { element: names::encode(&name), name, ty }
    }

    /// Appends the opening tag.
    pub(crate) fn open(&self, out: &mut Vec<u8>) {
        tag("<", &self.element, out);
    }

    /// Appends the closing tag.
    pub(crate) fn close(&self, out: &mut Vec<u8>) {
        tag("</", &self.element, out);
    }

    /// Appends a value with its tags. Appends nothing for a null.
    pub(crate) fn write(&self, cell: &Cell<'_>, out: &mut Vec<u8>) {
        match cell {
            Cell::Null => {}
            Cell::Text(text) => self.wrapped(out, |out| write_text(text, out)),
            Cell::Integer(number) => self.wrapped(out, |out| out.extend_from_slice(number.to_string().as_bytes())),
            Cell::Boolean(value) => {
                self.wrapped(out, |out| out.extend_from_slice(if *value { b"true" } else { b"false" }))
            }
            Cell::Rows(rows) => {
                let ColumnType::Nested(fields) = self.ty else { return };
                for row in rows {
                    self.wrapped(out, |out| {
                        for (field, cell) in fields.iter().zip(row) {
                            ResultField::from(*field).write(cell, out);
                        }
                    });
                }
            }
        }
    }

    fn wrapped(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.open(out);
        write(out);
        self.close(out);
    }

    fn write_declaration(&self, out: &mut Vec<u8>) {
        append("<xsd:element sql:field=\"", out);
        write_text(&self.name, out);
        append(&format!("\" name=\"{}\" ", self.element), out);
        let ColumnType::Nested(fields) = self.ty else {
            append(&format!("type=\"{}\" minOccurs=\"0\"/>", self.ty.as_str()), out);
            return;
        };
        append("minOccurs=\"0\" maxOccurs=\"unbounded\"><xsd:complexType><xsd:sequence>", out);
        for field in fields {
            ResultField::from(*field).write_declaration(out);
        }
        append("</xsd:sequence></xsd:complexType></xsd:element>", out);
    }
}

impl From<Field> for ResultField {
    fn from(field: Field) -> Self {
        ResultField::new(field.name, field.ty)
    }
}

fn tag(start: &str, name: &str, out: &mut Vec<u8>) {
    append(start, out);
    append(name, out);
    out.push(b'>');
}

fn append(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends the schema of rows with these columns.
pub fn write_schema(fields: &[ResultField], out: &mut Vec<u8>) {
    append(
        "<xsd:schema xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" xmlns:sql=\"urn:schemas-microsoft-com:xml-sql\" \
         targetNamespace=\"urn:schemas-microsoft-com:xml-analysis:rowset\" elementFormDefault=\"qualified\">\
         <xsd:element name=\"root\"><xsd:complexType><xsd:sequence minOccurs=\"0\" maxOccurs=\"unbounded\">\
         <xsd:element name=\"row\" type=\"row\"/></xsd:sequence></xsd:complexType></xsd:element>\
         <xsd:simpleType name=\"uuid\"><xsd:restriction base=\"xsd:string\"><xsd:pattern \
         value=\"[0-9a-zA-Z]{8}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{4}-[0-9a-zA-Z]{12}\"/></xsd:restriction>\
         </xsd:simpleType><xsd:complexType name=\"row\"><xsd:sequence>",
        out,
    );
    for field in fields {
        field.write_declaration(out);
    }
    append("</xsd:sequence></xsd:complexType></xsd:schema>", out);
}
