//! Tests of the machine with a made-up clock.
