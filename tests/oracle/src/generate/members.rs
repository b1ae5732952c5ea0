//! Generates dimensions, measures, segments and metrics over existing columns.

use serde_json::json;

use super::Generator;
use super::names::Names;
use crate::oracle::Paths;
use crate::world::{
    Aggregate, Arithmetic, Cell, Column, ColumnType, Comparison, Cube, Dimension, DimensionKind, Expr, Formula,
    Function, Length, Measure, MeasureKind, Metric, MetricKind, Segment, Window, World,
};

pub(super) fn add(generator: &mut Generator, world: &mut World, names: &mut Names) {
    let mut taken: Vec<Names> = world.cubes.iter().map(|_| Names::new()).collect();
    for (cube, names) in world.cubes.iter_mut().zip(&mut taken) {
        dimensions(generator, cube, names);
        for number in 0..generator.random.below(3) {
            let sql = generator.condition(cube, true);
            cube.segments.push(Segment { name: names.member(generator, &format!("segment{number}")), sql });
        }
    }
    // A column of another cube must be reached by to-one hops. A direct to-one join is such a hop.
    for (index, taken) in taken.iter_mut().enumerate() {
        let measures = measures(generator, world, index, taken);
        world.cubes[index].measures = measures;
    }
    for (index, taken) in taken.iter_mut().enumerate() {
        numbers(generator, world, index, taken);
    }
    metrics(generator, world, names);
}

fn dimensions(generator: &mut Generator, cube: &mut Cube, names: &mut Names) {
    let plain = |name, kind, sql| Dimension { name, kind, sql, primary_key: false, primary_time: false, is_utc: None };
    if generator.random.chance(75) {
        let name = names.member(generator, "id");
        cube.dimensions.push(Dimension { primary_key: true, ..plain(name, DimensionKind::Number, Expr::own(0)) });
    }
    for (index, column) in cube.columns.iter().enumerate().skip(1) {
        if !generator.random.chance(65) {
            continue;
        }
        let name = names.member(generator, &format!("dim{index}"));
        let mut dimension = plain(name, kind(column.ty), Expr::own(index));
        dimension.is_utc = match column.ty {
            ColumnType::Timestamp => *generator.random.of(&[None, Some(true), Some(false)]),
            ColumnType::TimestampTz => *generator.random.of(&[None, Some(true)]),
            ColumnType::Date => *generator.random.of(&[None, Some(false)]),
            _ => None,
        };
        cube.dimensions.push(dimension);
    }
    for number in 0..generator.random.below(3) {
        let name = names.member(generator, &format!("computed{number}"));
        let (kind, sql) = computed(generator, cube);
        cube.dimensions.push(plain(name, kind, sql));
    }
    let times: Vec<usize> =
        (0..cube.dimensions.len()).filter(|index| cube.dimensions[*index].kind == DimensionKind::Time).collect();
    if !times.is_empty() && generator.random.chance(60) {
        let index = *generator.random.of(&times);
        cube.dimensions[index].primary_time = true;
    }
    if cube.dimensions.is_empty() {
        let name = names.member(generator, "key");
        cube.dimensions.push(plain(name, DimensionKind::Number, Expr::own(0)));
    }
}

fn kind(ty: ColumnType) -> DimensionKind {
    match ty {
        ColumnType::Text => DimensionKind::String,
        ColumnType::Boolean => DimensionKind::Boolean,
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz => DimensionKind::Time,
        _ => DimensionKind::Number,
    }
}

fn computed(generator: &mut Generator, cube: &Cube) -> (DimensionKind, Expr) {
    let texts = columns(cube, |column| column.ty == ColumnType::Text);
    let is_infallible = generator.features.total_dimensions;
    match generator.random.below(4) {
        0 if is_infallible && !texts.is_empty() => {
            let text = Cell::Text((*generator.random.of(&["?", "it's", "none"])).to_owned());
            (DimensionKind::String, Expr::Coalesce(Box::new(Expr::own(*generator.random.of(&texts))), text))
        }
        1 if is_infallible => (DimensionKind::Boolean, generator.condition(cube, true)),
        2 if is_infallible => {
            let then = Box::new(Expr::Literal(Cell::Text("yes".to_owned())));
            let other = Box::new(Expr::Literal(Cell::Text("no".to_owned())));
            (DimensionKind::String, Expr::Case(Box::new(generator.condition(cube, true)), then, other))
        }
        _ => (DimensionKind::Number, generator.arithmetic(cube)),
    }
}

fn columns(cube: &Cube, fits: impl Fn(&Column) -> bool) -> Vec<usize> {
    (0..cube.columns.len()).filter(|index| fits(&cube.columns[*index])).collect()
}

impl Generator {
    /// Returns an arithmetic expression over the columns of small integers, of which each cube has at least one.
    fn arithmetic(&mut self, cube: &Cube) -> Expr {
        let small = columns(cube, |column| column.ty == ColumnType::Small);
        let op = *self.random.of(&[Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply]);
        let left = Expr::own(*self.random.of(&small));
        let right = match self.random.chance(50) {
            true => Expr::own(*self.random.of(&small)),
            false => Expr::Literal(Cell::Int(self.random.between(-2, 3))),
        };
        Expr::Arithmetic(op, Box::new(left), Box::new(right))
    }

    /// Returns a condition. If `is_infallible` is true, the condition may hold for a row of nulls.
    pub(super) fn condition(&mut self, cube: &Cube, is_infallible: bool) -> Expr {
        let comparable = columns(cube, |column| column.ty != ColumnType::TimestampTz);
        let index = *self.random.of(&comparable);
        let compared = |generator: &mut Generator| {
            let cell = generator.present(cube.columns[index].ty);
            let op = *generator.random.of(&Comparison::ALL);
            Expr::Compare(op, Box::new(Expr::own(index)), Box::new(Expr::Literal(cell)))
        };
        match self.random.below(8) {
            0 if is_infallible => Expr::IsNull(Box::new(Expr::own(index))),
            1 => Expr::Not(Box::new(compared(self))),
            2 => {
                let left = compared(self);
                Expr::And(Box::new(left), Box::new(self.condition(cube, is_infallible)))
            }
            3 => {
                let left = compared(self);
                Expr::Or(Box::new(left), Box::new(self.condition(cube, is_infallible)))
            }
            _ => compared(self),
        }
    }

    fn present(&mut self, ty: ColumnType) -> Cell {
        loop {
            match self.cell(ty) {
                Cell::Null => {}
                // Braces in SQL are references, also inside string literals.
                Cell::Text(text) if text.contains('{') => {}
                cell => return cell,
            }
        }
    }
}

fn measures(generator: &mut Generator, world: &World, index: usize, names: &mut Names) -> Vec<Measure> {
    let cube = &world.cubes[index];
    let mut found = Vec::new();
    for number in 0..2 + generator.random.below(5) {
        let function = *generator.random.of(&[
            Function::Count,
            Function::Count,
            Function::CountDistinct,
            Function::CountDistinctApprox,
            Function::Sum,
            Function::Sum,
            Function::Avg,
            Function::Min,
            Function::Max,
            Function::Median,
            Function::Percentile,
            Function::StdDev,
            Function::Variance,
            Function::SampleStdDev,
            Function::SampleVariance,
        ]);
        let argument = match function {
            Function::Count if generator.random.chance(70) => None,
            Function::Sum | Function::Avg => Some(numeric(generator, world, cube)),
            // For large numbers with small differences, engines return different digits.
            function if function.is_of_distribution() => {
                let is_small = |column: &Column| column.ty == ColumnType::Small;
                Some(Expr::own(*generator.random.of(&columns(cube, is_small))))
            }
            _ => Some(Expr::own(generator.random.below(cube.columns.len()))),
        };
        let filters = match generator.random.chance(30) {
            true => vec![generator.condition(cube, true)],
            false => Vec::new(),
        };
        let name = names.member(generator, &format!("measure{number}"));
        found.push(Measure { name, kind: MeasureKind::Aggregate(Aggregate { function, argument, filters }) });
    }
    if generator.features.steps && generator.random.chance(35) {
        let argument = Some(numeric(generator, world, cube));
        let name = names.member(generator, "running");
        let aggregate = Aggregate { function: Function::Sum, argument, filters: Vec::new() };
        let kind = match generator.random.chance(40) {
            true => MeasureKind::RunningTotalOfAll(aggregate),
            false => MeasureKind::RunningTotal(aggregate),
        };
        found.push(Measure { name, kind });
    }
    if generator.features.steps && generator.random.chance(45) {
        let kind = MeasureKind::Rolling(rolled(generator, world, cube), window(generator));
        found.push(Measure { name: names.member(generator, "rolling"), kind });
    }
    found
}

/// Returns an aggregate that may have a rolling window.
fn rolled(generator: &mut Generator, world: &World, cube: &Cube) -> Aggregate {
    let function = *generator.random.of(&[
        Function::Count,
        Function::CountDistinct,
        Function::CountDistinct,
        Function::Sum,
        Function::Sum,
        Function::Avg,
        Function::Min,
        Function::Max,
    ]);
    let argument = match function {
        Function::Count if generator.random.chance(70) => None,
        Function::Sum | Function::Avg => Some(numeric(generator, world, cube)),
        _ => Some(Expr::own(generator.random.below(cube.columns.len()))),
    };
    let filters = match generator.random.chance(25) {
        true => vec![generator.condition(cube, true)],
        false => Vec::new(),
    };
    Aggregate { function, argument, filters }
}

fn window(generator: &mut Generator) -> Window {
    let trailing = generator.random.chance(80).then(|| length(generator));
    let leading = (trailing.is_none() || generator.random.chance(25)).then(|| length(generator));
    Window { trailing, leading, is_from_start: generator.random.chance(30) }
}

fn length(generator: &mut Generator) -> Length {
    if generator.random.chance(15) {
        return Length::Unbounded;
    }
    let unit = *generator.random.of(&["hour", "day", "day", "day", "week", "month", "month", "quarter", "year"]);
    Length::Units(generator.random.between(1, 40), unit.to_owned())
}

/// Returns a numeric expression: a column of the cube, arithmetic, or a column of a cube that a to-one hop reaches.
fn numeric(generator: &mut Generator, world: &World, cube: &Cube) -> Expr {
    let is_numeric = |column: &Column| kind(column.ty) == DimensionKind::Number;
    if generator.random.chance(20) {
        return generator.arithmetic(cube);
    }
    let paths = Paths::new(world);
    let joined: Vec<&str> =
        cube.joins.iter().map(|join| join.name.as_str()).filter(|name| paths.is_to_one(&cube.name, name)).collect();
    if !joined.is_empty() && generator.random.chance(20) {
        let name = *generator.random.of(&joined);
        if let Some(target) = world.behind(name).filter(|target| target.name != cube.name) {
            let column = *generator.random.of(&columns(target, is_numeric));
            return Expr::Column { cube: Some(name.to_owned()), column };
        }
    }
    Expr::own(*generator.random.of(&columns(cube, is_numeric)))
}

/// Returns whether a measure is a count or sum that cannot overflow.
fn is_small(cube: &Cube, measure: &Measure) -> bool {
    let (MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling(aggregate, _)) = &measure.kind else { return false };
    match (&aggregate.argument, aggregate.function) {
        (_, function) if function.counts() => true,
        (Some(Expr::Arithmetic(..)), _) => true,
        (Some(Expr::Column { cube: None, column }), _) => {
            matches!(cube.columns[*column].ty, ColumnType::Small | ColumnType::Double)
        }
        _ => false,
    }
}

fn leaf(generator: &mut Generator, world: &World, own: Option<usize>) -> Option<Formula> {
    let index = match own {
        Some(own) if generator.random.chance(85) => own,
        _ => generator.random.below(world.cubes.len()),
    };
    let cube = &world.cubes[index];
    if own == Some(index) && generator.random.chance(30) {
        let column = *generator.random.of(&columns(cube, |column| column.ty == ColumnType::Small));
        let function = *generator.random.of(&[Function::Sum, Function::Count, Function::Max, Function::CountDistinct]);
        let aggregate = Aggregate { function, argument: Some(Expr::own(column)), filters: Vec::new() };
        return Some(Formula::Aggregate(Box::new(aggregate)));
    }
    let fits: Vec<&Measure> = cube.measures.iter().filter(|measure| is_small(cube, measure)).collect();
    let name = (!fits.is_empty()).then(|| generator.random.of(&fits).name.clone())?;
    Some(Formula::Measure { cube: (own != Some(index)).then(|| cube.name.clone()), name })
}

fn formula(generator: &mut Generator, world: &World, own: Option<usize>) -> Option<Formula> {
    let left = Box::new(leaf(generator, world, own)?);
    let right = Box::new(match generator.random.chance(25) {
        true => Formula::Constant(generator.random.between(0, 3)),
        false => leaf(generator, world, own)?,
    });
    Some(match generator.random.below(6) {
        0 => Formula::Binary(Arithmetic::Add, left, right),
        1 => Formula::Binary(Arithmetic::Subtract, left, right),
        2 => Formula::Binary(Arithmetic::Multiply, left, right),
        3 => Formula::Coalesce(left, 7),
        _ => Formula::Divide(left, right),
    })
}

fn numbers(generator: &mut Generator, world: &mut World, index: usize, names: &mut Names) {
    for number in 0..generator.random.below(3) {
        if let Some(formula) = formula(generator, world, Some(index)) {
            let name = names.member(generator, &format!("number{number}"));
            world.cubes[index].measures.push(Measure { name, kind: MeasureKind::Number(formula) });
        }
    }
}

fn metrics(generator: &mut Generator, world: &mut World, names: &mut Names) {
    for number in 0..generator.random.below(4) {
        let Some(first) = leaf(generator, world, None) else { continue };
        let kind = match generator.random.below(3) {
            0 => MetricKind::Simple(first),
            1 => match leaf(generator, world, None) {
                Some(second) => MetricKind::Ratio(first, second),
                None => continue,
            },
            _ => match (formula(generator, world, None), world.metrics.first()) {
                (Some(formula), Some(metric)) if generator.random.chance(40) => {
                    let inner = Formula::Metric(metric.name.clone());
                    MetricKind::Derived(Formula::Binary(Arithmetic::Add, Box::new(inner), Box::new(formula)))
                }
                (Some(formula), _) => MetricKind::Derived(formula),
                (None, _) => continue,
            },
        };
        let filters = match generator.random.chance(30) {
            true => filter_of(generator, world, &kind).into_iter().collect(),
            false => Vec::new(),
        };
        world.metrics.push(Metric { name: names.member(generator, &format!("metric{number}")), kind, filters });
    }
}

/// Returns a filter on a dimension of the cube of the metric's first measure.
fn filter_of(generator: &mut Generator, world: &World, kind: &MetricKind) -> Option<serde_json::Value> {
    let (MetricKind::Simple(Formula::Measure { cube, .. }) | MetricKind::Ratio(Formula::Measure { cube, .. }, _)) =
        kind
    else {
        return None;
    };
    let cube = world.cube(cube.as_deref()?)?;
    let numbers: Vec<&Dimension> = cube.dimensions.iter().filter(|d| d.kind == DimensionKind::Number).collect();
    let dimension = (!numbers.is_empty()).then(|| *generator.random.of(&numbers))?;
    let operator = *generator.random.of(&["gte", "notEquals", "lt"]);
    Some(json!({
        "member": format!("{}.{}", cube.name, dimension.name),
        "operator": operator,
        "value": generator.random.between(-1, 4),
    }))
}
