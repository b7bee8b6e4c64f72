//! Files in and out, tokenizers, sessions.
