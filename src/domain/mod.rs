//! Pure decisions: values in, values out. No clock, thread, channel, file, socket, random source or
//! log call; a test enforces it.

pub mod names;

pub mod id_map;

pub mod gather;

pub mod time;

pub mod declared;

pub mod health_check;

pub mod spec_hash;

pub mod fault;

pub mod observed;

pub mod diary;

pub mod record;

pub mod intent;

pub mod directory;

pub mod view;

pub mod restart;

pub mod backoff;

pub mod lifecycle;

mod heard;

mod discards;

mod slow;

mod stops;

pub mod leaving;

mod rebuild;

pub mod health;

mod stable;

pub mod stuck;

mod elsewhere;

mod boot;

pub mod judge;

pub mod recent;

pub mod quiesce;

pub mod drain;

pub mod plan;

mod probation;

pub mod show;

pub mod event;

pub mod effect;

pub mod machine;
