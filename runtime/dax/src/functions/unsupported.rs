//! Functions of DAX, of spreadsheets and of SQL that Terrane does not have.
//!
//! In: a name. Out: a sentence with a supported way to compute the same, if one is known. A name of this table is never
//! taken for a misspelled function of another meaning.

use super::compare;

/// A function that is not supported.
struct Unsupported {
    /// The name in upper case.
    name: &'static str,
    /// One sentence that ends with a period.
    hint: &'static str,
}

const fn replaced(name: &'static str, hint: &'static str) -> Unsupported {
    Unsupported { name, hint }
}

const MONTH_TO_DATE: &str = "Use DATESBETWEEN from the first day of the month, for example \
    CALCULATE([m], DATESBETWEEN(t[day], DATE(YEAR(MAX(t[day])), MONTH(MAX(t[day])), 1), MAX(t[day]))).";
const QUARTER_TO_DATE: &str = "Use CALCULATE with DATESBETWEEN from the first to the current day of the quarter.";
const CONDITIONAL_COUNT: &str = "Use CALCULATE with COUNTROWS and filters.";
const SUBTOTAL: &str = "Use ROLLUPADDISSUBTOTAL in SUMMARIZECOLUMNS.";
const DATES: &str = "Use the time dimension of a cube of dates.";
const PERCENTILE: &str = "Declare a measure with `type: percentile` in the project.";
const MEDIAN: &str = "Declare a measure with `type: median` in the project.";
const STDDEV: &str = "Declare a measure with `type: stddev` in the project.";
const SAMPLE_STDDEV: &str = "Declare a measure with `type: stddev` and `sample: true` in the project.";
const VARIANCE: &str = "Declare a measure with `type: variance` in the project.";
const SAMPLE_VARIANCE: &str = "Declare a measure with `type: variance` and `sample: true` in the project.";
const VARIABLE: &str = "Define a variable with VAR outside of the inner row context.";

/// Functions with a supported replacement, sorted by name.
static REPLACED: &[Unsupported] = &[
    replaced("APPROXIMATEDISTINCTCOUNT", "Use DISTINCTCOUNT, which is exact."),
    replaced("AVERAGEIF", "Use CALCULATE with AVERAGE and filters."),
    replaced("AVERAGEIFS", "Use CALCULATE with AVERAGE and filters."),
    replaced("AVG", "Use AVERAGE."),
    replaced("CALENDAR", DATES),
    replaced("CALENDARAUTO", DATES),
    replaced("CASE", "Use SWITCH."),
    replaced("CEILING", "Use -INT(-number / significance) * significance."),
    replaced("COMBINEVALUES", "Use the operator `&`."),
    replaced("CONCATENATE", "Use the operator `&`."),
    replaced("CONTAINS", "Use `value IN VALUES(column)`."),
    replaced("CONTAINSSTRING", "Use SUBSTITUTE(UPPER(text), UPPER(part), \"\") <> UPPER(text)."),
    replaced("CONTAINSSTRINGEXACT", "Use SUBSTITUTE(text, part, \"\") <> text."),
    replaced("COUNTAX", "Use COUNTX, which counts values of all types."),
    replaced("COUNTIF", CONDITIONAL_COUNT),
    replaced("COUNTIFS", CONDITIONAL_COUNT),
    replaced("CROSSFILTER", "Use TREATAS to filter a table by the values of another one."),
    replaced("CURRENCY", "Use ROUND(number, 4)."),
    replaced("CURRENTGROUP", "Use SUMMARIZECOLUMNS with an aggregate."),
    replaced("DATATABLE", "Use a table constructor, for example {(1, \"a\"), (2, \"b\")}."),
    replaced("DATESINPERIOD", "Use DATESBETWEEN with the first and the last date."),
    replaced("DATESMTD", MONTH_TO_DATE),
    replaced("DATESQTD", QUARTER_TO_DATE),
    replaced("DATEVALUE", "Write the date as `dt\"2024-01-31\"` or DATE(2024, 1, 31)."),
    replaced("EARLIER", VARIABLE),
    replaced("EARLIEST", VARIABLE),
    replaced("EXACT", "Use the operator `==`, which compares strings with their case."),
    replaced("EXP", "Use 2.718281828459045 ^ number."),
    replaced("FIRSTDATE", "Use MIN(dates), or TREATAS({MIN(dates)}, dates) as a filter."),
    replaced("FIRSTNONBLANK", "Use TOPN(1, FILTER(VALUES(column), NOT ISBLANK(expression)), column, ASC)."),
    replaced("FIXED", "Use FORMAT."),
    replaced("FLOOR", "Use INT(number / significance) * significance."),
    replaced("GENERATESERIES", "Use a table constructor, for example {1, 2, 3}."),
    replaced("GROUPBY", "Use SUMMARIZECOLUMNS or SUMMARIZE."),
    replaced("HOUR", "Use FORMAT(time, \"h\") + 0."),
    replaced("IF.EAGER", "Use IF."),
    replaced("IFNULL", "Use COALESCE."),
    replaced("IFS", "Use SWITCH(TRUE(), condition, result)."),
    replaced("ISINSCOPE", SUBTOTAL),
    replaced("ISNULL", "Use ISBLANK."),
    replaced("ISSUBTOTAL", SUBTOTAL),
    replaced("LASTDATE", "Use MAX(dates), or TREATAS({MAX(dates)}, dates) as a filter."),
    replaced("LASTNONBLANK", "Use TOPN(1, FILTER(VALUES(column), NOT ISBLANK(expression)), column, DESC)."),
    replaced("LOOKUPVALUE", "Use CALCULATE(SELECTEDVALUE(result), column = value)."),
    replaced("MAXA", "Use MAX, or MAXX with an expression that returns numbers."),
    replaced("MEDIAN", MEDIAN),
    replaced("MEDIANX", MEDIAN),
    replaced("MINA", "Use MIN, or MINX with an expression that returns numbers."),
    replaced("MINUTE", "Use FORMAT(time, \"n\") + 0."),
    replaced("MOD", "Use number - divisor * INT(number / divisor)."),
    replaced("NVL", "Use COALESCE."),
    replaced("PERCENTILE.EXC", PERCENTILE),
    replaced("PERCENTILE.INC", PERCENTILE),
    replaced("PERCENTILEX.EXC", PERCENTILE),
    replaced("PERCENTILEX.INC", PERCENTILE),
    replaced("PI", "Write 3.141592653589793."),
    replaced("POWER", "Use the operator `^`."),
    replaced("QUARTER", "Use FORMAT(date, \"q\") + 0."),
    replaced("RANK.EQ", "Use RANKX."),
    replaced("ROLLUP", SUBTOTAL),
    replaced("ROLLUPISSUBTOTAL", SUBTOTAL),
    replaced("ROUNDDOWN", "For numbers that are not negative, use INT(number * 10 ^ digits) / 10 ^ digits."),
    replaced("ROUNDUP", "For numbers that are not negative, use -INT(-number * 10 ^ digits) / 10 ^ digits."),
    replaced("SIGN", "Use IF(number > 0, 1, IF(number < 0, -1, 0))."),
    replaced("SQRT", "Use number ^ 0.5."),
    replaced("STDEV.P", STDDEV),
    replaced("STDEV.S", SAMPLE_STDDEV),
    replaced("SUMIF", "Use CALCULATE with SUM and filters."),
    replaced("SUMIFS", "Use CALCULATE with SUM and filters."),
    replaced("TEXT", "Use FORMAT."),
    replaced("TOTALMTD", MONTH_TO_DATE),
    replaced("TOTALQTD", QUARTER_TO_DATE),
    replaced("TRUNC", "For numbers that are not negative, use INT."),
    replaced("VALUE", "Add 0 to the string."),
    replaced("VAR.P", VARIANCE),
    replaced("VAR.S", SAMPLE_VARIANCE),
];

/// Functions of DAX without a replacement, sorted by name.
const OTHERS: &str = "\
    ACCRINT ACCRINTM ACOS ACOSH ACOT ACOTH ADDMISSINGITEMS ALLCROSSFILTERED ALLNOBLANKROW AMORDEGRC AMORLINC ASIN \
    ASINH ATAN ATANH AVERAGEA BETA.DIST BETA.INV BITAND BITLSHIFT BITOR BITRSHIFT BITXOR CHISQ.DIST CHISQ.INV \
    CLOSINGBALANCEMONTH CLOSINGBALANCEQUARTER CLOSINGBALANCEYEAR COLLAPSE COLLAPSEALL COLUMNSTATISTICS COMBIN \
    COMBINA CONFIDENCE.NORM CONFIDENCE.T CONVERT COS COSH COT COTH COUPDAYBS COUPDAYS COUPDAYSNC COUPNCD COUPNUM \
    COUPPCD CUMIPMT CUMPRINC CUSTOMDATA DB DDB DEGREES DETAILROWS DISC DOLLARDE DOLLARFR DURATION EDATE EFFECT \
    ENDOFMONTH ENDOFQUARTER ENDOFYEAR EOMONTH ERROR EVALUATEANDLOG EVEN EXPAND EXPANDALL EXPON.DIST FACT FILTERS \
    FIND FIRST FIRSTNONBLANKVALUE FV GCD GENERATEALL GEOMEAN GEOMEANX HASH HASONEFILTER IGNORE INDEX INFO INTRATE \
    IPMT ISAFTER ISATLEVEL ISCROSSFILTERED ISCURRENCY ISDATETIME ISDECIMAL ISDOUBLE ISEMPTY ISEVEN ISFILTERED \
    ISINT64 ISINTEGER ISLOGICAL ISNONTEXT ISNUMBER ISO.CEILING ISODD ISONORAFTER ISPMT ISSELECTEDMEASURE ISSTRING \
    ISTEXT KEYWORDMATCH LAST LASTNONBLANKVALUE LCM LINEST LINESTX LN LOG LOG10 MATCHBY MDURATION MID MOVINGAVERAGE \
    MROUND NAMEOF NATURALINNERJOIN NATURALLEFTOUTERJOIN NETWORKDAYS NEXT NEXTDAY NEXTMONTH NEXTQUARTER NEXTYEAR \
    NOMINAL NONVISUAL NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV NPER ODD ODDFPRICE ODDFYIELD ODDLPRICE ODDLYIELD \
    OFFSET OPENINGBALANCEMONTH OPENINGBALANCEQUARTER OPENINGBALANCEYEAR ORDERBY PARALLELPERIOD PARTITIONBY PATH \
    PATHCONTAINS PATHITEM PATHITEMREVERSE PATHLENGTH PDURATION PERMUT PMT POISSON.DIST PPMT PREVIOUS PREVIOUSDAY \
    PREVIOUSMONTH PREVIOUSQUARTER PRICE PRICEDISC PRICEMAT PRODUCT PRODUCTX PV QUOTIENT RADIANS RAND RANDBETWEEN \
    RANGE RANK RATE RECEIVED REPLACE REPT ROWNUMBER RRI RUNNINGSUM SAMPLE SAMPLEAXISWITHLOCALMINMAX \
    SAMPLECARTESIANPOINTSBYCOVER SEARCH SECOND SELECTEDMEASURE SELECTEDMEASUREFORMATSTRING SELECTEDMEASURENAME SIN \
    SINH SLN SQRTPI STARTOFMONTH STARTOFQUARTER STARTOFYEAR STDEVX.P STDEVX.S SUBSTITUTEWITHINDEX SYD T.DIST \
    T.DIST.2T T.DIST.RT T.INV T.INV.2T TAN TANH TBILLEQ TBILLPRICE TBILLYIELD TIME TIMEVALUE TOCSV TOJSON \
    TOPNPERLEVEL TOPNSKIP TRIM UNICHAR UNICODE USERCULTURE USERNAME USEROBJECTID USERPRINCIPALNAME UTCNOW UTCTODAY \
    VARX.P VARX.S VDB WEEKDAY WEEKNUM WINDOW XIRR XNPV YEARFRAC YIELD YIELDDISC YIELDMAT";

fn others() -> impl Iterator<Item = &'static str> {
    OTHERS.split_whitespace()
}

/// Returns whether a name is that of a function with a meaning of its own.
pub(super) fn is_known(name: &str) -> bool {
    replacement(name).is_some() || others().any(|other| other.eq_ignore_ascii_case(name))
}

/// Returns a sentence with a supported way to compute what an unsupported function computes, if one is known.
pub fn replacement(name: &str) -> Option<&'static str> {
    REPLACED.binary_search_by(|known| compare(known.name, name)).ok().map(|at| REPLACED[at].hint)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn tables_are_in_order_and_have_no_supported_function() {
        assert!(REPLACED.is_sorted_by(|one, two| one.name < two.name));
        assert!(others().is_sorted_by(|one, two| one < two));
        let names = || REPLACED.iter().map(|one| one.name).chain(others());
        assert_eq!(names().filter(|name| find(name).is_some()).collect::<Vec<_>>(), Vec::<&str>::new());
        assert_eq!(others().filter(|name| replacement(name).is_some()).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn hints_are_sentences_of_supported_functions() {
        for Unsupported { name, hint } in REPLACED {
            assert!(hint.ends_with('.') && hint.starts_with(char::is_uppercase), "{name}: {hint}");
            let words = hint.split(|c: char| !c.is_ascii_alphanumeric());
            let functions = words.filter(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()));
            let unknown: Vec<&str> =
                functions.filter(|word| find(word).is_none() && !["VAR", "IN", "ASC", "DESC"].contains(word)).collect();
            assert_eq!(unknown, Vec::<&str>::new(), "{name}: {hint}");
        }
    }
}
