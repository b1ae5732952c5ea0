//! Ids of cubes, members and metrics in one model.

/// The index of a cube, or of an alias of one, in its [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CubeId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeasureId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimensionId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId {
    pub cube: CubeId,
    pub index: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MetricId(pub u32);

/// A member of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Member {
    Measure(MeasureId),
    Dimension(DimensionId),
    Segment(SegmentId),
}

/// Identifies an operand of a comparison by its position in the condition of one join of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JoinOperandId {
    pub cube: CubeId,
    pub join: u32,
    pub operand: u32,
}
