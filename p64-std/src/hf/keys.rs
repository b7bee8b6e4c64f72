//! Keys in the order in which they are set; one that is set again keeps its place, as llama.cpp's converter has it.

use crate::write::Pairs;

/// The types of values, and each made of what it holds.
macro_rules! entries {
    ($($variant:ident($type:ty)),*) => {
        /// A value of a key.
        #[derive(Clone, PartialEq, Debug)]
        pub(super) enum Entry {
            $($variant($type)),*
        }

        $(impl From<$type> for Entry {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

entries!(
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(String),
    Bools(Vec<bool>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Strs(Vec<String>)
);

impl From<&str> for Entry {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}

/// The keys of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    arch: &'static str,
    entries: Vec<(String, Entry)>,
}

impl Keys {
    /// No key yet, of a model of the family that GGUF names `arch`.
    pub(super) const fn new(arch: &'static str) -> Self {
        Self { arch, entries: Vec::new() }
    }

    /// Sets a key by its whole name.
    pub(super) fn set(&mut self, key: impl Into<String>, value: impl Into<Entry>) -> &mut Self {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, slot)) => *slot = value,
            None => self.entries.push((key, value)),
        }
        self
    }

    /// Sets a key of the family: `ARCH.KEY`.
    pub(super) fn arch(&mut self, key: &str, value: impl Into<Entry>) -> &mut Self {
        let key = format!("{}.{key}", self.arch);
        self.set(key, value)
    }

    /// Sets a key of the family where there is a value.
    pub(super) fn arch_if(&mut self, key: &str, value: Option<impl Into<Entry>>) -> &mut Self {
        match value {
            Some(value) => self.arch(key, value),
            None => self,
        }
    }

    /// Adds the keys of another set behind these.
    pub(super) fn append(&mut self, other: Self) {
        for (key, value) in other.entries {
            self.set(key, value);
        }
    }

    /// The pairs in GGUF's encoding.
    pub(super) fn to_pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for (key, value) in &self.entries {
            match value {
                Entry::U32(value) => pairs.u32(key, *value),
                Entry::I32(value) => pairs.i32(key, *value),
                Entry::F32(value) => pairs.f32(key, *value),
                Entry::Bool(value) => pairs.bool(key, *value),
                Entry::Str(value) => pairs.str(key, value),
                Entry::Bools(values) => pairs.bool_array(key, values),
                Entry::I32s(values) => pairs.i32_array(key, values),
                Entry::F32s(values) => pairs.f32_array(key, values),
                Entry::Strs(values) => pairs.str_array(key, values),
            };
        }
        pairs
    }
}
