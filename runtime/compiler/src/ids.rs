//! Numbers of cubes, members and metrics in one model.

/// Index of a cube (or a role-playing alias of one) in its [`Model`].
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

/// The n-th operand of the comparisons of a cube's n-th join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JoinOperandId {
    pub cube: CubeId,
    pub join: u32,
    pub operand: u32,
}
