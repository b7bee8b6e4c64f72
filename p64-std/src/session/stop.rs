//! Stop texts: what might be the beginning of one is held back until it is certain.

/// Text between the decoder and the caller.
pub(super) struct StopFilter {
    stops: Vec<String>,
    /// Text not handed out yet.
    held: String,
    /// How much of `held` is certain.
    ready: usize,
    stopped: bool,
}

impl StopFilter {
    /// A filter for these texts; empty ones are left out.
    pub(super) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { stops, held: String::new(), ready: 0, stopped: false }
    }

    /// Takes text in. Answers whether a stop text has appeared; what follows it is dropped, and so is it.
    pub(super) fn push(&mut self, text: &str) -> bool {
        if self.stopped {
            return true;
        }
        self.held.push_str(text);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop)).min() {
            self.held.truncate(at);
            self.ready = at;
            self.stopped = true;
            return true;
        }
        // Hold back the longest tail that some stop text begins with.
        let uncertain = |at: &usize| {
            let tail = self.held.get(*at..).unwrap_or_default();
            self.stops.iter().any(|stop| stop.starts_with(tail))
        };
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let boundary = self.held.char_indices().map(|(at, _)| at).filter(|at| *at >= from).find(uncertain);
        self.ready = boundary.unwrap_or(self.held.len());
        false
    }

    /// Gives up waiting: nothing more comes.
    pub(super) fn flush(&mut self) {
        self.ready = self.held.len();
    }

    /// The text that is certain, once.
    pub(super) fn take(&mut self) -> String {
        let rest = self.held.split_off(self.ready);
        self.ready = 0;
        std::mem::replace(&mut self.held, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut filter = StopFilter::new(&stops);
        let mut out = Vec::new();
        let mut stopped = false;
        for piece in pieces {
            stopped = filter.push(piece);
            out.push(filter.take());
            if stopped {
                break;
            }
        }
        filter.flush();
        out.push(filter.take());
        (out.into_iter().filter(|text| !text.is_empty()).collect(), stopped)
    }

    #[test]
    fn text_passes_at_once_where_no_stop_can_begin() {
        assert_eq!(run(&[], &["a", "b"]), (vec!["a".into(), "b".into()], false));
        assert_eq!(run(&["END"], &["ab", "c"]), (vec!["ab".into(), "c".into()], false));
    }

    #[test]
    fn a_stop_over_several_pieces_is_never_shown() {
        assert_eq!(run(&["END"], &["abE", "N", "Dxyz"]), (vec!["ab".into()], true));
        assert_eq!(run(&["END"], &["abE", "N", "O"]), (vec!["ab".into(), "ENO".into()], false));
        assert_eq!(run(&["\n\n"], &["a\n", "b\n", "\nc"]), (vec!["a".into(), "\nb".into()], true));
    }

    /// The beginnings of a stop text may overlap, and end in the middle of what a piece brings.
    #[test]
    fn overlapping_beginnings_are_followed() {
        assert_eq!(run(&["aab"], &["a", "a", "a", "b", "x"]), (vec!["a".into()], true));
        assert_eq!(run(&["aab"], &["aaab"]), (vec!["a".into()], true));
        assert_eq!(run(&["abab!"], &["ab", "ab", "ab", "!"]), (vec!["ab".into()], true));
        assert_eq!(run(&["ab", "abc"], &["xa", "b", "c"]), (vec!["x".into()], true));
        // Whichever is complete first ends it, although another began before.
        assert_eq!(run(&["abcd", "bc"], &["a", "b", "c", "d"]), (vec!["a".into()], true));
        assert_eq!(run(&["abcd", "bcx"], &["a", "b", "c", "y"]), (vec!["abcy".into()], false));
    }

    #[test]
    fn characters_of_several_bytes_are_never_split() {
        assert_eq!(run(&["éé!"], &["é", "é", "é", "!"]), (vec!["é".into()], true));
        assert_eq!(run(&["日本語"], &["今日", "本", "日", "本語だ"]), (vec!["今".into(), "日本".into()], true));
        assert_eq!(run(&["🙂🙂"], &["🙂a", "🙂"]), (vec!["🙂a".into(), "🙂".into()], false));
        // As long a tail as the longest stop text, cut inside a character.
        assert_eq!(run(&["ab", "xyz"], &["ééé"]), (vec!["ééé".into()], false));
        assert_eq!(run(&["é"], &["e\u{301}"]), (vec!["e\u{301}".into()], false), "compared as written");
    }

    #[test]
    fn the_first_of_several_wins_and_tails_are_flushed() {
        assert_eq!(run(&["xx", "b"], &["abxx"]), (vec!["a".into()], true));
        assert_eq!(run(&["END"], &["abEN"]), (vec!["ab".into(), "EN".into()], false));
        assert_eq!(run(&["", "é!"], &["aé"]), (vec!["a".into(), "é".into()], false));
    }
}
