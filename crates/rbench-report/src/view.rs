//! Display options of a report for people.

/// Default width of a report that is not printed on a terminal.
pub const WIDTH: usize = 120;
/// Smallest width of a report, however narrow the terminal.
pub const WIDTH_MIN: usize = 80;

/// Display options of a report for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    width: usize,
    /// Show everything, not only totals and findings that deserve attention.
    pub details: bool,
    /// Use of colours, where the report has colours.
    pub colour: Colour,
}

/// Use of colours, which depends on the reader's terminal and wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// No colours.
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

    /// Sets the width, at least [`WIDTH_MIN`].
    pub fn wide(self, columns: usize) -> View {
        View {
            width: columns.max(WIDTH_MIN),
            ..self
        }
    }

    /// Sets details on or off.
    pub const fn with_details(self, details: bool) -> View {
        View { details, ..self }
    }

    /// Sets the use of colours.
    pub fn with_colour(self, colour: Colour) -> View {
        View { colour, ..self }
    }

    /// Maximum width of a line, unless a single word is wider.
    pub fn width(self) -> usize {
        self.width
    }
}
