//! What `p64 diff` has found, as text or as JSON.

mod object;
mod text;
mod values;

pub use object::object;
pub use text::render;
