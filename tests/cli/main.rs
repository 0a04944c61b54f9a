//! The API over a real socket, and the commands over the API, with a made-up agent behind both.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the report")]

mod commands;
mod deploying;
mod fake;
mod http;
mod journal;
mod quiesce;
mod recovering;
mod routes;
mod selecting;
mod streams;
mod terminal;
