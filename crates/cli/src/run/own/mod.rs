//! `causeway run --at SITE COMMAND ...`: one program over sites that each run their own MPI.

pub mod rendezvous;
