//! Merging values field by field.

use crate::latency::Latency;

/// Merges the fields of another value, by reference, into those of the same name. Each is named
/// once, after its rule; the compiler finds a field without one. `kept` leaves a field as it is, and
/// `own` makes it a variable for the code that follows.
macro_rules! merge {
    ($mine:ident, $other:expr => $Type:ident { $($rule:ident: $($field:ident)+;)+ }) => {
        let $Type { $($($field,)+)+ } = $other;
        $($(merge!(@$rule $mine $field);)+)+
    };
    (@add $mine:ident $field:ident) => { $mine.$field += *$field };
    (@time $mine:ident $field:ident) => {
        $mine.$field.0 = $mine.$field.0.saturating_add($field.0)
    };
    (@least $mine:ident $field:ident) => { $mine.$field = $mine.$field.min(*$field) };
    (@most $mine:ident $field:ident) => { $mine.$field = $mine.$field.max(*$field) };
    (@each $mine:ident $field:ident) => {
        $mine.$field.iter_mut().zip($field).for_each(|(mine, theirs)| *mine += *theirs)
    };
    (@merge $mine:ident $field:ident) => { $mine.$field.merge($field) };
    (@some $mine:ident $field:ident) => {
        $crate::merge::some(&mut $mine.$field, $field.as_ref())
    };
    (@kept $mine:ident $field:ident) => { let _ = $field; };
    (@own $mine:ident $field:ident) => {};
}

pub(crate) fn some(mine: &mut Option<Latency>, theirs: Option<&Latency>) {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => mine.merge(theirs),
        (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
        (_, None) => {}
    }
}
