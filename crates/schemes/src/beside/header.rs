//! The header of a packet among several schemes: the index of its scheme, and that scheme's own header.

use crate::foreign::Numbers;
use crate::telemetry::{IntHeader, Left};
use std::any::{Any, TypeId};

/// Scheme of a packet, and its header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SharedHeader {
    /// Index of the scheme.
    pub(super) owner: u8,
    content: Content,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Content {
    #[default]
    Nothing,
    Left(Left),
    Telemetry(IntHeader),
    Numbers(Numbers),
}

impl SharedHeader {
    /// Whether there is a header for the headers of type `D`.
    pub fn fits<D: 'static>() -> bool {
        let of = TypeId::of::<D>();
        [TypeId::of::<()>(), TypeId::of::<Left>(), TypeId::of::<IntHeader>(), TypeId::of::<Numbers>()].contains(&of)
    }

    /// The header of a packet of scheme `owner`.
    #[inline]
    pub fn of<D: 'static>(owner: u8, data: &D) -> Self {
        let data: &dyn Any = data;
        let content = if let Some(&left) = data.downcast_ref() {
            Content::Left(left)
        } else if let Some(&records) = data.downcast_ref() {
            Content::Telemetry(records)
        } else if let Some(&numbers) = data.downcast_ref() {
            Content::Numbers(numbers)
        } else {
            Content::Nothing
        };
        SharedHeader { owner, content }
    }

    /// The header as one of type `D`: the default if it is another scheme's.
    #[inline]
    pub fn data<D: Copy + Default + 'static>(&self) -> D {
        let found: &dyn Any = match &self.content {
            Content::Nothing => &(),
            Content::Left(left) => left,
            Content::Telemetry(records) => records,
            Content::Numbers(numbers) => numbers,
        };
        found.downcast_ref::<D>().copied().unwrap_or_default()
    }
}
