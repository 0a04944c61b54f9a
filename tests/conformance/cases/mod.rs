//! The cases, by what they are about.

pub mod health;
pub mod life;
pub mod made;
pub mod network;
pub mod streams;
