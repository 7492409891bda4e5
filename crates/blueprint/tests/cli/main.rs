//! The program as people run it: arguments in, text and exit code out. No cluster, no network.

mod commands;
mod doctor;
mod house;
mod interrupt;
mod refusals;
mod secrets;
