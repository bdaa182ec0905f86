//! Macros that turn the registry's lists into modules, and into functions that map a name to a type.

macro_rules! schemes {
    ($($file:ident :: $scheme:ident,)*) => {
        $(pub mod $file;)*

        /// Monolithic schemes.
        pub(crate) const WHOLE: &[subak_core::scheme::Info] =
            &[$(<crate::$file::$scheme as subak_core::scheme::Named>::INFO),*];

        $(const _: () = assert!(
            registry::times(<crate::$file::$scheme as subak_core::scheme::Named>::INFO.name) == 1,
            concat!("another scheme or preset has the name of ", stringify!($file), "::", stringify!($scheme)),
        );)*

        pub(crate) fn with_whole<V: Visitor>(
            name: &str, given: &registry::GivenParams, visitor: V,
        ) -> Result<V::Out, subak_core::InputError> {
            $(if name == <crate::$file::$scheme as subak_core::scheme::Named>::INFO.name {
                return registry::visit_whole::<crate::$file::$scheme, V>(given, visitor);
            })*
            Err(registry::unknown(name))
        }
    };
}

macro_rules! parts {
    (optimizers { $($of:ident :: $o:ident : $ok:ident,)* } transports $transports:tt) => {
        /// Optimizers, one file each: target weights or rates of subflows, and the prices of links.
        pub mod optimizers {
            mod prices;
            $(pub mod $of;)*
        }

        /// All optimizers.
        pub const OPTIMIZERS: &[over::Part] =
            &[$(<crate::optimizers::$of::$o as over::Optimizer>::PART),*];

        $(const _: () = assert!(
            registry::times_part(OPTIMIZERS, <crate::optimizers::$of::$o as over::Optimizer>::PART.name) == 1,
            concat!("another optimizer has the name of ", stringify!($of), "::", stringify!($o)),
        );)*
        parts!(@transports $transports);

        /// All valid pairs of an optimizer and a transport.
        #[allow(clippy::vec_init_then_push, reason = "which pairs there are, the lists decide")]
        pub(crate) fn all_pairs() -> Vec<subak_core::scheme::Info> {
            let mut pairs = Vec::new();
            $(parts!(@infos pairs, $of, $o, $ok, $transports);)*
            pairs
        }

        pub(crate) fn with_pair<V: Visitor>(
            (optimizer, transport): (&str, &str),
            info: &subak_core::scheme::Info,
            given: &registry::GivenParams,
            visitor: V,
        ) -> Result<V::Out, subak_core::InputError> {
            $(parts!(@visit (optimizer, transport, info, given, visitor), V, $of, $o, $ok, $transports);)*
            Err(registry::refusal(optimizer, transport))
        }

        /// The output of the optimizer of that name: weights or rates.
        pub fn kind_of_optimizer(name: &str) -> Option<&'static str> {
            $(if name == <crate::optimizers::$of::$o as over::Optimizer>::PART.name {
                return Some(<<crate::optimizers::$of::$o as over::Optimizer>::Wish as over::Wish>::KIND);
            })*
            None
        }
    };
    (@transports { $($ff:ident :: $f:ident : $fk:ident,)* }) => {
        /// Transports, one file each: they converge to the targets of an optimizer.
        pub mod transports {
            $(pub mod $ff;)*
        }

        /// All transports.
        pub const TRANSPORTS: &[over::Part] =
            &[$(<crate::transports::$ff::$f as over::Transport>::PART),*];

        $(const _: () = assert!(
            registry::times_part(TRANSPORTS, <crate::transports::$ff::$f as over::Transport>::PART.name) == 1,
            concat!("another transport has the name of ", stringify!($ff), "::", stringify!($f)),
        );)*

        /// The input of the transport of that name: weights or rates.
        pub fn kind_of_transport(name: &str) -> Option<&'static str> {
            $(if name == <crate::transports::$ff::$f as over::Transport>::PART.name {
                return Some(<<crate::transports::$ff::$f as over::Transport>::Wish as over::Wish>::KIND);
            })*
            None
        }
    };
    (@infos $pairs:ident, $of:ident, $o:ident, $ok:ident, { $($ff:ident :: $f:ident : $fk:ident,)* }) => {
        $(parts!(@info $ok $fk $pairs, crate::optimizers::$of::$o, crate::transports::$ff::$f);)*
    };
    (@visit $args:tt, $v:ident, $of:ident, $o:ident, $ok:ident, { $($ff:ident :: $f:ident : $fk:ident,)* }) => {
        $(parts!(@one $ok $fk $args, $v, crate::optimizers::$of::$o, crate::transports::$ff::$f);)*
    };
    (@info Weight Weight $pairs:ident, $o:path, $f:path) => { $pairs.push(registry::pair::<$o, $f>()) };
    (@info Rate Rate $pairs:ident, $o:path, $f:path) => { $pairs.push(registry::pair::<$o, $f>()) };
    (@info Rate Weight $pairs:ident, $o:path, $f:path) => { $pairs.push(registry::pair::<$o, $f>()) };
    (@info $ok:ident $fk:ident $pairs:ident, $o:path, $f:path) => {};
    (@one Weight Weight $args:tt, $v:ident, $o:path, $f:path) => { parts!(@call $args, $v, $o, $f) };
    (@one Rate Rate $args:tt, $v:ident, $o:path, $f:path) => { parts!(@call $args, $v, $o, $f) };
    (@one Rate Weight ($on:ident, $fn:ident, $info:ident, $given:ident, $visitor:ident), $v:ident, $o:path, $f:path) => {
        if $on == <$o as over::Optimizer>::PART.name && $fn == <$f as over::Transport>::PART.name {
            return registry::visit_as_weights::<$o, $f, $v>($info, $given, $visitor);
        }
    };
    (@one $ok:ident $fk:ident $args:tt, $v:ident, $o:path, $f:path) => {};
    (@call ($on:ident, $fn:ident, $info:ident, $given:ident, $visitor:ident), $v:ident, $o:path, $f:path) => {
        if $on == <$o as over::Optimizer>::PART.name && $fn == <$f as over::Transport>::PART.name {
            return registry::visit_pair::<over::Over<$o, $f>, $v>($info, $given, $visitor);
        }
    };
}
