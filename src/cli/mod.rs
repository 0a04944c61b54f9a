//! Command groups, client, tables.
