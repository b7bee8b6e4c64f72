//! Helpers for the tests of the workspace.
