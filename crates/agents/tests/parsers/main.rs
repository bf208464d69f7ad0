//! The parsers of all families, over what agents printed and over what they never would.

mod expected;
mod handmade;
mod properties;
mod replay;
mod transcripts;
