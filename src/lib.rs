//! bargee keeps the containers of one small device in the state that was declared for them.
//!
//! The modules in reading order. `domain` is pure and decides; the rooms after it each touch one
//! part of the world; `agent` and `cli` put them together. See `docs/architecture.md`.

pub mod limits;

pub mod domain;

pub mod yaml;

pub mod manifest;

pub mod engine;

pub mod store;

pub mod api;

pub mod os;

pub mod config;

pub mod agent;

pub mod cli;
