//! The page as one file, with all it shows inside: to look at without a server, or to send to somebody.
