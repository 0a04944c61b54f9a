//! The API over a real socket, and the commands over the API, with a made-up agent behind both.

mod commands;
mod deploying;
mod fake;
mod http;
mod routes;
mod selecting;
mod streams;
mod terminal;
