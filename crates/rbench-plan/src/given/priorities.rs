//! `cmdprio_bssplit`: priorities of requests by their size.

use rbench_core::IoPriority;

use super::Given;

/// One entry of `cmdprio_bssplit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrioritySplit {
    /// Bytes of the requests.
    pub block: u64,
    /// Percentage of them that have the priority.
    pub percent: u32,
    /// The priority; `None`: that of `cmdprio_class`, `cmdprio` and `cmdprio_hint`.
    pub priority: Option<IoPriority>,
}

/// The class of an entry with class 0, as in fio: best effort.
const UNCLASSED: u8 = 2;

impl Given<'_> {
    /// `4k/60:8k/40`, or with a class, a level and maybe a hint: `4k/60/2/0:8k/40/3/7`
    pub fn priority_splits(self) -> Result<Vec<PrioritySplit>, String> {
        self.text
            .split(':')
            .map(|entry| self.priority_split(entry))
            .collect()
    }

    fn priority_split(self, entry: &str) -> Result<PrioritySplit, String> {
        let parts: Vec<&str> = entry.split('/').collect();
        let (block, percent, priority) = match parts.as_slice() {
            [block] => (block, "", None),
            [block, percent] => (block, *percent, None),
            [block, percent, class, level] => (block, *percent, Some((class, level, "0"))),
            [block, percent, class, level, hint] => (block, *percent, Some((class, level, *hint))),
            _ => {
                return Err(format!(
                    "'{entry}' is not SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL"
                ));
            }
        };
        let priority = priority.map(|(class, level, hint)| {
            let class = match self.part(class).within(0, 3)? {
                0 => UNCLASSED,
                class => class,
            };
            let level = self.part(level).within(0, 7)?;
            let hint = self.part(hint).within(0, 1023)?;
            Ok::<_, String>(IoPriority::new(class, level, hint))
        });
        Ok(PrioritySplit {
            block: self.part(block).count(1)?,
            percent: match percent {
                // Unlike in bssplit.
                "" => 0,
                percent => self.part(percent).percent()?,
            },
            priority: priority.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<PrioritySplit>, String> {
        Given::alone(text).priority_splits()
    }

    #[test]
    fn entries_have_a_size_a_percentage_and_maybe_a_priority() {
        let check = |text: &str, expect: &[(u64, u32, Option<IoPriority>)]| {
            let entry =
                |(block, percent, priority): &(u64, u32, Option<IoPriority>)| PrioritySplit {
                    block: *block,
                    percent: *percent,
                    priority: *priority,
                };
            assert_eq!(read(text), Ok(expect.iter().map(entry).collect()), "{text}");
        };
        let priority = |class, level, hint| Some(IoPriority::new(class, level, hint));
        check("4k/60:8k/40", &[(4096, 60, None), (8192, 40, None)]);
        // fio gives none of these a priority.
        check("4k:8k/", &[(4096, 0, None), (8192, 0, None)]);
        check(
            "4k/60/2/3:512/1/3/7/9",
            &[(4096, 60, priority(2, 3, 0)), (512, 1, priority(3, 7, 9))],
        );
        // Class 0 is best effort in fio.
        check("4k/60/0/0", &[(4096, 60, priority(2, 0, 0))]);
    }

    #[test]
    fn others_are_refused() {
        let words = "4k/60/2 4k/60/4/0 4k/60/2/8 4k/60/2/0/1024 4k/60/2/0/1/1 4k/101 4k/x x/60 0/60 4k/60: /60";
        for text in words.split(' ').chain([""]) {
            assert!(read(text).is_err(), "{text}");
        }
        let why = read("4k/50:4k/60/2").expect_err("no level");
        assert_eq!(
            why,
            "'4k/60/2' is not SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL"
        );
    }
}
