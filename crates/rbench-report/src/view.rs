//! How a report for people is shown.

/// Columns of a report that is neither on a terminal nor told how wide to be.
pub const WIDTH: usize = 120;
/// Columns that a report has at least, however narrow the terminal.
pub const WIDTH_MIN: usize = 80;

/// How a report for people is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    width: usize,
    /// Whether everything is shown, rather than totals and what deserves attention.
    pub details: bool,
    /// Whether figures are coloured, where the report has colours.
    pub colour: Colour,
}

/// Whether figures are coloured: whether the reader's terminal can, and its user
/// wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// Text alone.
    #[default]
    Off,
    /// Figures within usual ranges are green, then yellow, then red.
    On,
}

impl Default for View {
    fn default() -> View {
        View::USUAL
    }
}

impl View {
    /// [`WIDTH`] columns, no details, no colours.
    pub const USUAL: View = View {
        width: WIDTH,
        details: false,
        colour: Colour::Off,
    };

    /// The same so many columns wide, [`WIDTH_MIN`] at least.
    pub fn wide(self, columns: usize) -> View {
        View {
            width: columns.max(WIDTH_MIN),
            ..self
        }
    }

    /// The same with or without details.
    pub const fn with_details(self, details: bool) -> View {
        View { details, ..self }
    }

    /// The same with colours or without.
    pub fn with_colour(self, colour: Colour) -> View {
        View { colour, ..self }
    }

    /// Columns that no line exceeds, but for a single word that does.
    pub fn width(self) -> usize {
        self.width
    }
}
