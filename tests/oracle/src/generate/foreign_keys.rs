//! Generates foreign keys of the warehouse for some of the world's joins.

use super::Generator;
use crate::world::{Cell, Relationship, World};

/// Adds a foreign key to some joins, and changes their rows so that the key is satisfied. Most worlds get none.
pub fn enforce(generator: &mut Generator, world: &mut World) {
    if !generator.random.chance(40) {
        return;
    }
    for from in 0..world.cubes.len() {
        for at in 0..world.cubes[from].joins.len() {
            let join = &world.cubes[from].joins[at];
            let (left, right) = (join.left, join.right);
            // The referenced table must be created before the table with the key.
            let target = world.cubes[..from].iter().find(|cube| cube.name == join.target());
            let Some(target) = target.filter(|_| join.relationship == Relationship::ManyToOne) else { continue };
            let keys: Vec<Cell> = target.rows.iter().map(|row| row[right].clone()).collect();
            if keys.is_empty() || generator.random.chance(25) {
                continue;
            }
            let cube = &mut world.cubes[from];
            for row in &mut cube.rows {
                row[left] = generator.random.of(&keys).clone();
            }
            cube.joins[at].is_enforced = true;
        }
    }
}
